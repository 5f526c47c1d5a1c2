package admin_test

import (
	"cmp"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/admin"
)

// javaConfig is what ElasticJob writes for newBuilder(name, total).cron("0/5 * * * * ?").
func javaConfig(name string, total int) string {
	return fmt.Sprintf(`cron: 0/5 * * * * ?
description: ''
disabled: false
failover: false
jobName: %s
jobParameter: ''
maxTimeDiffSeconds: -1
misfire: true
monitorExecution: true
overwrite: false
reconcileIntervalMinutes: 10
shardingItemParameters: ''
shardingTotalCount: %d
staticSharding: false
`, name, total)
}

const (
	java1 = "10.0.0.1@-@4711"
	java2 = "10.0.0.2@-@4712"
)

// javaJob makes a job of two live instances and two items as ElasticJob's own members
// leave it in the registry. Its ephemeral nodes are persistent here: nobody lives.
func (b *bed) javaJob(name string) {
	b.Helper()
	root := "/shop/" + name
	b.put(root+"/config", javaConfig(name, 2))
	for i, id := range []string{java1, java2} {
		ip, _, _ := strings.Cut(id, "@-@")
		b.put(root+"/servers/"+ip, "ENABLED")
		b.put(root+"/instances/"+id, "jobInstanceId: "+id+"\nserverIp: "+ip+"\n")
		b.put(fmt.Sprintf("%s/sharding/%d/instance", root, i), id)
	}
}

// ElasticJob's lifecycle API, call by call: what each does to a namespace in which two
// jobs of its own run on two servers, through which function.
func TestLifecycle(t *testing.T) {
	brief := func(jobs []admin.Job) string {
		var out []string
		for _, j := range jobs {
			out = append(out, fmt.Sprintf("%s %s %q %d instances, %d items", j.Name, j.State, j.Cron, j.Instances, j.Total))
		}
		return strings.Join(out, "; ")
	}
	server := func(b *bed, job, ip string) string {
		n := b.get("/shop/" + job + "/servers/" + ip)
		if !n.Exists() {
			return "gone"
		}
		return string(n.Value)
	}
	all := func(b *bed) string {
		var out []string
		for _, job := range []string{"a", "b"} {
			for _, ip := range []string{"10.0.0.1", "10.0.0.2"} {
				out = append(out, job+ip[len(ip)-1:]+"="+server(b, job, ip))
			}
		}
		return strings.Join(out, " ")
	}
	instances := func(b *bed) string {
		var out []string
		for _, job := range []string{"a", "b"} {
			ids, err := b.store.Children(b.Context(), "/shop/"+job+"/instances")
			require.NoError(b, err)
			out = append(out, strings.Join(ids, ","))
		}
		return strings.Join(out, " ")
	}
	both := java1 + "," + java2
	for _, call := range []struct {
		api, name string
		act       func(b *bed) (any, error)
		want      any
	}{
		{"JobConfigurationAPI", "getJobConfiguration", func(b *bed) (any, error) {
			c, err := b.Config(b.Context(), "a")
			return fmt.Sprintf("%s %s %d", c.Name, c.Cron, c.Shards), err
		}, "a 0/5 * * * * ? 2"},
		{"JobConfigurationAPI", "updateJobConfiguration", func(b *bed) (any, error) {
			c, err := b.Config(b.Context(), "a")
			require.NoError(b, err)
			c.Cron, c.Shards = "0/7 * * * * ?", 5
			err = b.SetConfig(b.Context(), c)
			return string(b.get("/shop/a/config").Value), err
		}, strings.NewReplacer("0/5", "0/7", "TotalCount: 2", "TotalCount: 5").Replace(javaConfig("a", 2))},
		{"JobConfigurationAPI", "removeJobConfiguration", func(b *bed) (any, error) {
			_, err := b.Shutdown(b.Context(), admin.Target{Job: "a"})
			require.NoError(b, err)
			err = b.RemoveJob(b.Context(), "a")
			return b.get("/shop/a").Exists(), err
		}, false},
		{"JobOperateAPI", "disable(job)", func(b *bed) (any, error) {
			return nil, b.Disable(b.Context(), admin.Target{Job: "a"})
		}, "a1=DISABLED a2=DISABLED b1=ENABLED b2=ENABLED"},
		{"JobOperateAPI", "disable(ip)", func(b *bed) (any, error) {
			return nil, b.Disable(b.Context(), admin.Target{IP: "10.0.0.2"})
		}, "a1=ENABLED a2=DISABLED b1=ENABLED b2=DISABLED"},
		{"JobOperateAPI", "disable(job, ip)", func(b *bed) (any, error) {
			return nil, b.Disable(b.Context(), admin.Target{Job: "b", IP: "10.0.0.1"})
		}, "a1=ENABLED a2=ENABLED b1=DISABLED b2=ENABLED"},
		{"JobOperateAPI", "enable", func(b *bed) (any, error) {
			require.NoError(b, b.Disable(b.Context(), admin.Target{IP: "10.0.0.1"}))
			return nil, b.Enable(b.Context(), admin.Target{Job: "a"})
		}, "a1=ENABLED a2=ENABLED b1=DISABLED b2=ENABLED"},
		{"JobOperateAPI", "shutdown(job)", func(b *bed) (any, error) {
			_, err := b.Shutdown(b.Context(), admin.Target{Job: "a"})
			return instances(b), err
		}, " " + both},
		{"JobOperateAPI", "shutdown(ip)", func(b *bed) (any, error) {
			_, err := b.Shutdown(b.Context(), admin.Target{IP: "10.0.0.1"})
			return instances(b), err
		}, java2 + " " + java2},
		{"JobOperateAPI", "shutdown(job, ip)", func(b *bed) (any, error) {
			_, err := b.Shutdown(b.Context(), admin.Target{Job: "b", IP: "10.0.0.1"})
			return instances(b), err
		}, both + " " + java2},
		{"JobOperateAPI", "remove(job)", func(b *bed) (any, error) {
			_, err := b.Shutdown(b.Context(), admin.Target{Job: "a"})
			require.NoError(b, err)
			return nil, b.RemoveServers(b.Context(), admin.Target{Job: "a"})
		}, "a1=gone a2=gone b1=ENABLED b2=ENABLED"},
		{"JobOperateAPI", "remove(ip)", func(b *bed) (any, error) {
			_, err := b.Shutdown(b.Context(), admin.Target{IP: "10.0.0.2"})
			require.NoError(b, err)
			return nil, b.RemoveServers(b.Context(), admin.Target{IP: "10.0.0.2"})
		}, "a1=ENABLED a2=gone b1=ENABLED b2=gone"},
		{"JobOperateAPI", "remove(job, ip)", func(b *bed) (any, error) {
			_, err := b.Shutdown(b.Context(), admin.Target{Job: "a", IP: "10.0.0.2"})
			require.NoError(b, err)
			return nil, b.RemoveServers(b.Context(), admin.Target{Job: "a", IP: "10.0.0.2"})
		}, "a1=ENABLED a2=gone b1=ENABLED b2=ENABLED"},
		{"JobOperateAPI", "dump", func(b *bed) (any, error) {
			text, err := b.Dump(b.Context(), "a")
			return strings.Split(text, "\n")[4], err
		}, "/shop/a/instances/ip2@-@4712 | jobInstanceId: ip2@-@4712, serverIp: ip2"},
		{"ShardingOperateAPI", "disable", func(b *bed) (any, error) {
			err := b.DisableItem(b.Context(), "a", 1)
			return b.get("/shop/a/sharding/1/disabled").Exists(), err
		}, true},
		{"ShardingOperateAPI", "enable", func(b *bed) (any, error) {
			require.NoError(b, b.DisableItem(b.Context(), "a", 1))
			err := b.EnableItem(b.Context(), "a", 1)
			return b.get("/shop/a/sharding/1/disabled").Exists(), err
		}, false},
		{"JobStatisticsAPI", "getJobsTotalCount", func(b *bed) (any, error) {
			names, err := b.Names(b.Context())
			return len(names), err
		}, 2},
		{"JobStatisticsAPI", "getAllJobsBriefInfo", func(b *bed) (any, error) {
			jobs, err := b.Jobs(b.Context())
			return brief(jobs), err
		}, `a OK "0/5 * * * * ?" 2 instances, 2 items; b OK "0/5 * * * * ?" 2 instances, 2 items`},
		{"JobStatisticsAPI", "getJobBriefInfo", func(b *bed) (any, error) {
			job, err := b.Job(b.Context(), "b")
			return brief([]admin.Job{job}), err
		}, `b OK "0/5 * * * * ?" 2 instances, 2 items`},
		{"JobStatisticsAPI", "getJobsBriefInfo(ip)", func(b *bed) (any, error) {
			require.NoError(b, b.Disable(b.Context(), admin.Target{Job: "b", IP: "10.0.0.1"}))
			jobs, err := b.JobsOn(b.Context(), "10.0.0.1")
			return brief(jobs), err
		}, `a OK "0/5 * * * * ?" 1 instances, 2 items; b DISABLED "0/5 * * * * ?" 1 instances, 2 items`},
		{"ServerStatisticsAPI", "getServersTotalCount", func(b *bed) (any, error) {
			servers, err := b.Servers(b.Context())
			return len(servers), err
		}, 2},
		{"ServerStatisticsAPI", "getAllServersBriefInfo", func(b *bed) (any, error) {
			require.NoError(b, b.Disable(b.Context(), admin.Target{Job: "b", IP: "10.0.0.1"}))
			servers, err := b.Servers(b.Context())
			return fmt.Sprint(servers), err
		}, "[{10.0.0.1 [a b] [b] [" + java1 + "]} {10.0.0.2 [a b] [] [" + java2 + "]}]"},
		{"ShardingStatisticsAPI", "getShardingInfo", func(b *bed) (any, error) {
			items, err := b.Items(b.Context(), "a")
			var out []string
			for _, it := range items {
				out = append(out, fmt.Sprint(it.Number, " ", it.Server, " ", it.Instance, " ", it.State, " ", it.Failover))
			}
			return strings.Join(out, "; "), err
		}, "0 10.0.0.1 " + java1 + " PENDING false; 1 10.0.0.2 " + java2 + " PENDING false"},
	} {
		t.Run(call.api+"/"+call.name, func(t *testing.T) {
			inBubble(t, func(b *bed) {
				b.javaJob("a")
				b.javaJob("b")
				got, err := call.act(b)
				require.NoError(b, err)
				if got == nil {
					got = all(b)
				}
				require.Equal(b, call.want, got)
			})
		})
	}
}

// A target is a job, a server, or both; what does not exist is told.
func TestTargetsThatAreNone(t *testing.T) {
	inBubble(t, func(b *bed) {
		b.javaJob("a")
		for _, act := range []func(admin.Target) error{
			func(t admin.Target) error { return b.Disable(b.Context(), t) },
			func(t admin.Target) error { return b.Enable(b.Context(), t) },
			func(t admin.Target) error { return b.RemoveServers(b.Context(), t) },
			func(t admin.Target) error { _, err := b.Shutdown(b.Context(), t); return err },
		} {
			require.ErrorContains(b, act(admin.Target{}), "neither a job nor a server")
			require.ErrorIs(b, act(admin.Target{Job: "nobody"}), admin.ErrNoJob)
			require.ErrorContains(b, act(admin.Target{Job: "a/b"}), "jobName")
		}
		require.ErrorContains(b, b.Disable(b.Context(), admin.Target{IP: "10.9.9.9"}), "10.9.9.9")
		require.ErrorIs(b, b.RemoveServers(b.Context(), admin.Target{Job: "a", IP: "10.0.0.1"}), admin.ErrInUse)
		require.ErrorIs(b, b.RemoveJob(b.Context(), "a"), admin.ErrInUse)
		require.True(b, b.get("/shop/a/config").Exists())
		require.ErrorIs(b, b.DisableItem(b.Context(), "a", 2), admin.ErrNoItem)
		require.ErrorIs(b, b.EnableItem(b.Context(), "a", -1), admin.ErrNoItem)
		_, err := b.Item(b.Context(), "a", 7)
		require.ErrorIs(b, err, admin.ErrNoItem)
	})
}

// The four states of a job, in their order.
func TestJobStates(t *testing.T) {
	for name, c := range map[string]struct {
		change func(b *bed)
		want   admin.JobState
		why    string
	}{
		"all is well": {func(*bed) {}, admin.JobOK, ""},
		"no instance, and all servers disabled": {func(b *bed) {
			b.remove("/shop/a/instances/" + java1)
			b.remove("/shop/a/instances/" + java2)
			require.NoError(b, b.Disable(b.Context(), admin.Target{Job: "a"}))
		}, admin.JobCrashed, "no instance is registered"},
		"all servers disabled, and an owner gone": {func(b *bed) {
			b.remove("/shop/a/instances/" + java1)
			require.NoError(b, b.Disable(b.Context(), admin.Target{Job: "a"}))
		}, admin.JobDisabled, "every server is disabled"},
		"no servers": {func(b *bed) {
			b.remove("/shop/a/servers/10.0.0.1")
			b.remove("/shop/a/servers/10.0.0.2")
		}, admin.JobDisabled, "no server is known"},
		"disabled in its configuration": {func(b *bed) { require.NoError(b, b.DisableJob(b.Context(), "a", "alice:", "the disk is full")) },
			admin.JobDisabled, "the job is disabled in its configuration: alice: the disk is full"},
		"one server disabled": {func(b *bed) { require.NoError(b, b.Disable(b.Context(), admin.Target{IP: "10.0.0.1"})) }, admin.JobOK, ""},
		"an owner gone":       {func(b *bed) { b.remove("/shop/a/instances/" + java1) }, admin.JobSharding, "the owner of item 0, " + java1 + ", is gone"},
		"nothing assigned": {func(b *bed) {
			b.remove("/shop/a/sharding/0/instance")
			b.remove("/shop/a/sharding/1/instance")
		}, admin.JobSharding, "no item is assigned yet"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *bed) {
				b.javaJob("a")
				c.change(b)
				job, err := b.Job(b.Context(), "a")
				require.NoError(b, err)
				require.Equal(b, c.want, job.State)
				require.Equal(b, c.why, job.Why)
			})
		})
	}
}

// The states of an item, the first that holds: each case has what the later ones ask for.
func TestItemStates(t *testing.T) {
	for i, c := range []struct {
		nodes []string
		dead  bool
		want  admin.ItemState
	}{
		{[]string{"disabled", "running"}, true, admin.ItemDisabled},
		{[]string{"running"}, true, admin.ItemRunning},
		{nil, true, admin.ItemSharding},
		{nil, false, admin.ItemPending},
	} {
		t.Run(cmp.Or(string(c.want), fmt.Sprint(i)), func(t *testing.T) {
			inBubble(t, func(b *bed) {
				b.javaJob("a")
				for _, n := range c.nodes {
					b.put("/shop/a/sharding/0/"+n, java1)
				}
				if c.dead {
					b.remove("/shop/a/instances/" + java1)
				}
				it, err := b.Item(b.Context(), "a", 0)
				require.NoError(b, err)
				require.Equal(b, c.want, it.State)
				require.Equal(b, java1, it.Instance)
			})
		})
	}
}

func TestFailoverIsShown(t *testing.T) {
	inBubble(t, func(b *bed) {
		b.javaJob("a")
		b.put("/shop/a/sharding/0/failover", java2)
		it, err := b.Item(b.Context(), "a", 0)
		require.NoError(b, err)
		require.True(b, it.Failover)
	})
}
