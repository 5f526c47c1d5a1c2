package layout

import (
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/elasticron/elasticron/registry"
	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/internal/field"
)

func newJob(t testing.TB, namespace, name string) Job {
	t.Helper()
	j, err := New(namespace, name)
	require.NoError(t, err)
	return j
}

// everyPath is what each method of a job returns, by its name.
func everyPath(j Job, item int, ip, id string) map[string]string {
	return map[string]string{
		"NamespaceRoot": j.NamespaceRoot(), "Root": j.Root(), "Config": j.Config(),
		"Servers": j.Servers(), "Server": j.Server(ip),
		"Instances": j.Instances(), "Instance": j.Instance(id),
		"LeaderRoot": j.LeaderRoot(), "LeaderElection": j.LeaderElection(), "Leader": j.Leader(), "ElectionLatch": j.ElectionLatch(),
		"ShardingState": j.ShardingState(), "Necessary": j.Necessary(), "Processing": j.Processing(),
		"FailoverRoot": j.FailoverRoot(), "FailoverItems": j.FailoverItems(), "FailoverItem": j.FailoverItem(item), "FailoverLatch": j.FailoverLatch(),
		"Sharding": j.Sharding(), "Item": j.Item(item), "ItemInstance": j.ItemInstance(item), "Running": j.Running(item),
		"Misfire": j.Misfire(item), "Disabled": j.Disabled(item), "Failover": j.Failover(item), "Failovering": j.Failovering(item),
		"GuaranteeRoot": j.GuaranteeRoot(), "GuaranteeStarted": j.GuaranteeStarted(), "GuaranteeStartedItem": j.GuaranteeStartedItem(item),
		"GuaranteeStartedLatch": j.GuaranteeStartedLatch(), "GuaranteeCompleted": j.GuaranteeCompleted(),
		"GuaranteeCompletedItem": j.GuaranteeCompletedItem(item), "GuaranteeCompletedLatch": j.GuaranteeCompletedLatch(),
		"Trigger": j.Trigger(), "TriggerInstance": j.TriggerInstance(id), "SystemTime": j.SystemTime(), "NextInstanceIP": j.NextInstanceIP(),
		"OwnRoot": j.OwnRoot(), "Lives": j.Lives(), "Life": j.Life(id), "Ledgers": j.Ledgers(), "Ledger": j.Ledger(id), "Notices": j.Notices(), "Notice": j.Notice(id), "Term": j.Term(), "Rounds": j.Rounds(id), "RoundsDir": j.RoundsDir(), "Claim": j.Claim(),
		"Clocks": j.Clocks(), "Clock": j.Clock(id),
		"InForce": j.InForce(), "Base": j.Base(), "Schedule": j.Schedule(), "Paused": j.Paused("worker-3"),
		"Offsets": j.Offsets(), "Offset": j.Offset(item), "OldOffset": j.OldOffset(item),
	}
}

func TestPaths(t *testing.T) {
	j := newJob(t, "team/shop", "hello")
	require.Equal(t, "team/shop", j.Namespace())
	require.Equal(t, "hello", j.Name())
	const root, own, id = "/team/shop/hello", "/elasticron/team/shop/hello", "10.0.0.5@-@4711"
	require.Equal(t, map[string]string{
		"NamespaceRoot": "/team/shop", "Root": root, "Config": root + "/config",
		"Servers": root + "/servers", "Server": root + "/servers/10.0.0.5",
		"Instances": root + "/instances", "Instance": root + "/instances/" + id,
		"LeaderRoot": root + "/leader", "LeaderElection": root + "/leader/election",
		"Leader": root + "/leader/election/instance", "ElectionLatch": root + "/leader/election/latch",
		"ShardingState": root + "/leader/sharding", "Necessary": root + "/leader/sharding/necessary", "Processing": root + "/leader/sharding/processing",
		"FailoverRoot": root + "/leader/failover", "FailoverItems": root + "/leader/failover/items",
		"FailoverItem": root + "/leader/failover/items/12", "FailoverLatch": root + "/leader/failover/latch",
		"Sharding": root + "/sharding", "Item": root + "/sharding/12", "ItemInstance": root + "/sharding/12/instance",
		"Running": root + "/sharding/12/running", "Misfire": root + "/sharding/12/misfire", "Disabled": root + "/sharding/12/disabled",
		"Failover": root + "/sharding/12/failover", "Failovering": root + "/sharding/12/failovering",
		"GuaranteeRoot": root + "/guarantee", "GuaranteeStarted": root + "/guarantee/started", "GuaranteeStartedItem": root + "/guarantee/started/12",
		"GuaranteeStartedLatch": root + "/guarantee/started-latch", "GuaranteeCompleted": root + "/guarantee/completed",
		"GuaranteeCompletedItem": root + "/guarantee/completed/12", "GuaranteeCompletedLatch": root + "/guarantee/completed-latch",
		"Trigger": root + "/trigger", "TriggerInstance": root + "/trigger/" + id,
		"SystemTime": root + "/systemTime/current", "NextInstanceIP": root + "/next-job-instance-ip",
		"OwnRoot": own, "Lives": own + "/lives", "Life": own + "/lives/" + id,
		"Ledgers": own + "/ledgers", "Ledger": own + "/ledgers/" + id, "Notices": own + "/notices", "Notice": own + "/notices/" + id, "Term": own + "/term", "Rounds": own + "/rounds/" + id, "RoundsDir": own + "/rounds", "Claim": own + "/inforce/claim",
		"Clocks": own + "/clocks", "Clock": own + "/clocks/" + id,
		"InForce": own + "/inforce", "Base": own + "/inforce/base", "Schedule": own + "/inforce/schedule",
		"Paused":  own + "/inforce/paused@worker-3",
		"Offsets": own + "/offsets", "Offset": own + "/offsets/12", "OldOffset": root + "/offset/12",
	}, everyPath(j, 12, "10.0.0.5", id))
}

func TestPausedName(t *testing.T) {
	name, ok := PausedName(path.Base(newJob(t, "shop", "hello").Paused("worker-3")))
	require.True(t, ok)
	require.Equal(t, "worker-3", name)
	for _, other := range []string{"base", "schedule", "paused", "paused@", "paused@a@b"} {
		_, ok := PausedName(other)
		require.False(t, ok, other)
	}
}

func TestScaffold(t *testing.T) {
	require.Equal(t, []string{
		"/team", "/team/shop", "/team/shop/hello",
		"/team/shop/hello/servers", "/team/shop/hello/instances",
		"/team/shop/hello/leader", "/team/shop/hello/leader/election", "/team/shop/hello/leader/sharding",
		"/team/shop/hello/leader/failover", "/team/shop/hello/leader/failover/items",
		"/team/shop/hello/sharding", "/team/shop/hello/trigger",
		"/elasticron", "/elasticron/team", "/elasticron/team/shop", "/elasticron/team/shop/hello",
		"/elasticron/team/shop/hello/lives", "/elasticron/team/shop/hello/ledgers",
		"/elasticron/team/shop/hello/notices", "/elasticron/team/shop/hello/inforce",
	}, newJob(t, "team/shop", "hello").Scaffold())
}

func TestNewRefuses(t *testing.T) {
	for name, c := range map[string]struct{ namespace, job, field, says string }{
		"space before name":   {"shop", " j", "jobName", `is " j"; remove the space`}, // Finding C 21.
		"space after name":    {"shop", "j\u00a0", "jobName", "remove the space at its ends"},
		"no namespace":        {"", "j", "namespace", "is empty"},
		"own namespace":       {"elasticron", "j", "namespace", "choose another"},
		"below own namespace": {"elasticron/x", "j", "namespace", "choose another"},
		"leading slash":       {"/shop", "j", "namespace", `leave out the "/"`},
		"trailing slash":      {"shop/", "j", "namespace", `leave out the "/"`},
		"empty segment":       {"a//b", "j", "namespace", "empty"},
		"dots":                {"a/..", "j", "namespace", `".."`},
		"control":             {"a\x01", "j", "namespace", "U+0001"},
		"long namespace":      {strings.Repeat("a/", 900) + "a", "j", "namespace", "too long"},
		"no job":              {"shop", "", "jobName", "is empty"},
		"slash":               {"shop", "a/b", "jobName", `instead of "/"`},
		"separator":           {"shop", "a@-@b", "jobName", "task id"},
		"half separator":      {"shop", "a@-", "jobName", "task id"},
		"long job":            {"shop", strings.Repeat("j", 256), "jobName", "shorten"},
		"dot":                 {"shop", ".", "jobName", `"."`},
		"not UTF-8":           {"shop", "a\xff", "jobName", "UTF-8"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := New(c.namespace, c.job)
			var wrong *field.Error
			require.ErrorAs(t, err, &wrong)
			require.Equal(t, c.field, wrong.Field)
			require.True(t, strings.HasPrefix(err.Error(), c.field+": "), "%v", err)
			require.Contains(t, err.Error(), c.says)
			require.NotContains(t, err.Error(), "\n")
		})
	}
}

func TestNewAccepts(t *testing.T) {
	for _, ns := range []string{"shop", "a/b/c", "elasticronx", "x/elasticron", "北京"} {
		for _, name := range []string{"j", strings.Repeat("j", 255), "a@b", "a b", "作业", "com.example.Job"} {
			_, err := New(ns, name)
			require.NoError(t, err, "%s %s", ns, name)
		}
	}
}

func TestParseItem(t *testing.T) {
	for name, want := range map[string]int{"0": 0, "7": 7, "2147483647": 2147483647} {
		item, ok := ParseItem(name)
		require.True(t, ok, name)
		require.Equal(t, want, item)
	}
	for _, name := range []string{"", "-1", "+1", "01", "a", "1a", "2147483648", "٣", " 1"} {
		_, ok := ParseItem(name)
		require.False(t, ok, name)
	}
}

func TestItemPathsAllocateOnce(t *testing.T) {
	j := newJob(t, "shop", "hello")
	var sink string
	require.LessOrEqual(t, testing.AllocsPerRun(100, func() { sink = j.Running(42) }), 1.0)
	require.NotEmpty(t, sink)
}

func FuzzPaths(f *testing.F) {
	f.Add("shop", "hello", "web-1", 3)
	f.Add("a/b", "x@-", "", -1)
	f.Add("elasticron", "..", "a/b", 1<<31)
	f.Fuzz(func(t *testing.T, namespace, job, name string, item int) {
		j, err := New(namespace, job)
		if err != nil {
			require.NotContains(t, err.Error(), "\n")
			return
		}
		require.Equal(t, j.NamespaceRoot()+"/"+job, j.Root())
		id, err := NewInstanceID("10.0.0.5", name)
		if err != nil {
			require.NotContains(t, err.Error(), "\n")
			return
		}
		checkPaths(t, j, max(0, item), id)
		back, err := ParseInstanceID(id.String())
		require.NoError(t, err)
		require.Equal(t, id, back)
	})
}

func checkPaths(t *testing.T, j Job, item int, id InstanceID) {
	t.Helper()
	seen := map[string]string{}
	for method, path := range everyPath(j, item, id.IP, id.String()) {
		require.NoError(t, registry.ValidatePath(path), method)
		require.Empty(t, seen[path], "%s is %s too", path, method)
		seen[path] = method
	}
	scaffold := j.Scaffold()
	for i, path := range scaffold {
		require.NoError(t, registry.ValidatePath(path))
		parent := path[:strings.LastIndexByte(path, '/')]
		require.True(t, parent == "" || slices.Contains(scaffold[:i], parent), "%s stands before its parent", path)
		require.NotContains(t, scaffold[:i], path)
	}
}
