package admin_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/admin"
	"github.com/elasticron/elasticron/core"
	"github.com/elasticron/elasticron/core/event"
	"github.com/elasticron/elasticron/internal/testbed"
	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/zookeeper"
)

const answerTime = 30 * time.Second

// A lifecycle is ElasticJob's own lifecycle API, in a process of its own.
type lifecycle struct {
	t       *testing.T
	cmd     *exec.Cmd
	in      io.WriteCloser
	answers chan string
	ended   chan struct{}
	log     testbed.Output
}

// startLifecycle starts ElasticJob's lifecycle API 3.0.4.
func startLifecycle(t *testing.T, connect, namespace string) *lifecycle {
	t.Helper()
	classes := testbed.JavaClasses(t, "ElasticJob's lifecycle API beside jobs of ours", "lifecycle-3.0.4",
		"testdata/lifecycle/pom.xml", nil, "testdata/lifecycle/Lifecycle.java")
	l := &lifecycle{t: t, answers: make(chan string, 1), ended: make(chan struct{})}
	// It ends with its input, which ends with the test.
	l.cmd = exec.Command("java", "-Xmx96m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData",
		"-Djava.net.preferIPv4Stack=true", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", classes, "Lifecycle", connect, namespace)
	l.cmd.Stderr = &l.log
	in, err := l.cmd.StdinPipe()
	require.NoError(t, err)
	out, err := l.cmd.StdoutPipe()
	require.NoError(t, err)
	l.in = in
	require.NoError(t, l.cmd.Start())
	go func() {
		defer close(l.ended)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			l.answers <- lines.Text()
		}
	}()
	t.Cleanup(func() {
		_ = l.in.Close()
		_ = l.cmd.Process.Kill()
		<-l.ended
		_ = l.cmd.Wait()
		if t.Failed() {
			t.Logf("ElasticJob has said: %s", l.log.String())
		}
	})
	return l
}

// call makes a call and returns its answer, in one line.
func (l *lifecycle) call(words ...string) string {
	l.t.Helper()
	_, err := fmt.Fprintln(l.in, strings.Join(words, "\t"))
	require.NoError(l.t, err, l.log.String())
	select {
	case answer := <-l.answers:
		text, ok := strings.CutPrefix(answer, "ok ")
		require.True(l.t, ok, "%v: %s", words, answer)
		return text
	case <-l.ended:
		require.FailNow(l.t, "ElasticJob's process has ended", l.log.String())
	case <-time.After(answerTime):
		require.FailNow(l.t, "no answer", "%v: %s", words, l.log.String())
	}
	return ""
}

// onZooKeeper is a bed with the words by which ElasticJob finds it.
func onZooKeeper(t *testing.T) (b *bed, connect string) {
	t.Helper()
	server := testbed.SharedZooKeeper(t)
	chroot := fmt.Sprintf("/admin-%d-%s", os.Getpid(), t.Name())
	b = &bed{T: t, poll: 5 * time.Millisecond, client: func() registry.Registry {
		reg, err := zookeeper.Open(t.Context(), zookeeper.Config{
			Servers: server.Client().Addrs(), Namespace: "shop", SessionTimeout: 4 * time.Second, Chroot: chroot,
		})
		require.NoError(t, err)
		return reg
	}}
	b.open()
	return b, strings.Join(server.Client().Addrs(), ",") + chroot
}

var lives = regexp.MustCompile(`@-@([a-z]+)-[a-z2-7]{10}\b`)

// ElasticJob's own lifecycle API 3.0.4 manages jobs of ours: every call of it.
func TestElasticJobsLifecycleAPIManagesOurJobs(t *testing.T) {
	b, connect := onZooKeeper(t)
	api := startLifecycle(t, connect, "shop")
	cfg := everySecond
	cfg.JobParam, cfg.Props = "daily", map[string]string{"mail": "sesame"}
	a, c := b.start("a", "10.0.0.1", cfg), b.start("c", "10.0.0.2", cfg)
	b.until("both own items", func() bool { return spread(map[*instance]int{a: 2, c: 2}) })
	call := func(words ...string) string {
		b.Helper()
		return lives.ReplaceAllString(api.call(words...), "@-@$1")
	}

	// JobStatisticsAPI, ServerStatisticsAPI, ShardingStatisticsAPI
	require.Equal(t, "1", call("getJobsTotalCount"))
	const brief = "hello OK * * * * * ? instances=2 items=4"
	require.Equal(t, brief, call("getJobBriefInfo", "hello"))
	require.Equal(t, brief, call("getAllJobsBriefInfo"))
	require.Equal(t, "hello OK null instances=1 items=0", call("getJobsBriefInfo", "10.0.0.1"), "3.0.4 says no more of a job on a server")
	require.Equal(t, "2", call("getServersTotalCount"))
	require.Equal(t, "10.0.0.1 instances=1 jobs=[hello] disabled=0; 10.0.0.2 instances=1 jobs=[hello] disabled=0", call("getAllServersBriefInfo"))
	shards := call("getShardingInfo", "hello")
	for _, owner := range []string{"10.0.0.1 10.0.0.1@-@a", "10.0.0.2 10.0.0.2@-@c"} {
		require.Equal(t, 2, strings.Count(shards, owner), shards)
	}
	require.Equal(t, 4, strings.Count(shards, "PENDING"), shards)
	release := make(chan struct{})
	a.onRun(func(ctx context.Context, _ core.Shard) error {
		select {
		case <-release:
		case <-ctx.Done():
		}
		return nil
	})
	b.until("what lasts is shown as running", func() bool { return strings.Count(call("getShardingInfo", "hello"), "@a RUNNING") == 2 })
	close(release)
	a.onRun(nil)

	// ShardingOperateAPI
	item := fmt.Sprint(a.job().Items[0])
	call("disableItem", "hello", item)
	b.until("the item is disabled", func() bool { return len(a.job().DisabledItems) == 1 })
	b.until("that is shown", func() bool {
		return strings.Contains(call("getShardingInfo", "hello"), item+" 10.0.0.1 10.0.0.1@-@a DISABLED")
	})
	call("enableItem", "hello", item)
	b.until("the item is enabled", func() bool { return len(a.job().DisabledItems) == 0 })

	// JobConfigurationAPI
	require.Equal(t, "hello * * * * * ? 4 daily", call("getJobConfiguration", "hello"))
	call("updateJobConfiguration", "hello", "0/2 * * * * ?", "6", "hourly")
	b.until("the new total is in force", func() bool { return spread(map[*instance]int{a: 3, c: 3}) })
	require.Equal(t, "hello 0/2 * * * * ? 6 hourly", call("getJobConfiguration", "hello"))
	b.until("the parameter has changed", func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		return len(a.ran) > 0 && a.ran[len(a.ran)-1].JobParam == "hourly"
	})
	require.Equal(t, "sesame", mustConfig(b).Props["mail"], "what ElasticJob does not know stays")

	// JobOperateAPI
	for _, target := range [][]string{{"hello", "10.0.0.1"}, {"", "10.0.0.1"}} {
		call("disable", target[0], target[1])
		b.until("the server is disabled", func() bool { return spread(map[*instance]int{a: 0, c: 6}) })
		require.Contains(t, call("getAllServersBriefInfo"), "10.0.0.1 instances=1 jobs=[hello] disabled=1")
		call("enable", target[0], target[1])
		b.until("the server is enabled", func() bool { return spread(map[*instance]int{a: 3, c: 3}) })
	}
	call("disable", "hello", "")
	b.until("all are disabled", func() bool {
		return strings.Contains(a.job().Disabled, "disabled") && strings.Contains(c.job().Disabled, "disabled")
	})
	require.Contains(t, call("getJobBriefInfo", "hello"), "DISABLED")
	call("enable", "hello", "")
	b.until("all are enabled", func() bool { return a.job().Disabled == "" && c.job().Disabled == "" })

	call("trigger", "hello")
	b.until("each instance has run", func() bool {
		asked := func(e event.FireBegun) bool { return e.Request != 0 }
		_, one := told(a, asked)
		_, other := told(c, asked)
		return one && other
	})
	b.until("its nodes are gone", func() bool {
		return !b.get("/shop/hello/trigger/"+a.id()).Exists() && !b.get("/shop/hello/trigger/"+c.id()).Exists()
	})
	b.fires(a)
	b.fires(c)

	dump := strings.Split(call("dump", "hello", "127.0.0.1", serveDumps(b)), `\n`)
	require.Contains(t, dump, "/shop/hello/servers/ip1 | ENABLED")
	require.Contains(t, strings.Join(dump, "\n"), "/shop/hello/sharding/0/instance | ip")
	require.NotContains(t, strings.Join(dump, "\n"), "10.0.0.")
	require.NotContains(t, strings.Join(dump, "\n"), "sesame")

	call("shutdown", "hello", "10.0.0.1")
	b.until("the instance has left", func() bool {
		_, left := told(a, func(e event.Stopped) bool { return e.Reason == event.StopShutDown })
		return left && spread(map[*instance]int{c: 6})
	})
	call("remove", "hello", "10.0.0.1")
	require.False(t, b.get("/shop/hello/servers/10.0.0.1").Exists())
	require.Equal(t, "1", call("getServersTotalCount"))
	call("shutdown", "hello", "")
	b.until("the other has left", func() bool { return c.job().Phase == core.PhaseStopped })
	require.Contains(t, call("getJobBriefInfo", "hello"), "CRASHED")
	call("removeJobConfiguration", "hello")
	require.Equal(t, "0", call("getJobsTotalCount"))
	require.False(t, b.get("/shop/hello").Exists())
}

func mustConfig(b *bed) admin.Config {
	b.Helper()
	c, err := b.Config(b.Context(), "hello")
	require.NoError(b, err)
	return c
}

// serveDumps serves until the test's end and returns its port.
func serveDumps(b *bed) (port string) {
	b.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(b, err)
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- b.ServeDumps(ctx, l) }()
	b.Cleanup(func() {
		cancel()
		require.NoError(b, <-served)
	})
	_, port, err = net.SplitHostPort(l.Addr().String())
	require.NoError(b, err)
	return port
}

// ElasticJob's dump protocol: a command, an answer, the end. Whatever one client sends, or does
// not, the next is answered.
func TestServeDumps(t *testing.T) {
	b, _ := onZooKeeper(t)
	b.javaJob("hello")
	addr := "127.0.0.1:" + serveDumps(b)
	ask := func(text string) string {
		b.Helper()
		conn, err := net.Dial("tcp", addr)
		require.NoError(t, err)
		defer conn.Close()
		_, err = io.WriteString(conn, text)
		require.NoError(t, err)
		require.NoError(t, conn.SetReadDeadline(time.Now().Add(answerTime)))
		answer, err := io.ReadAll(conn)
		require.NoError(t, err)
		return string(answer)
	}
	silent, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	defer silent.Close()
	whole, err := b.Dump(b.Context(), "hello")
	require.NoError(t, err)
	for _, c := range []struct{ send, want string }{
		{"dump@nobody\n", "no such job"}, {"dump@\n", "jobName"}, {"dump@../x\n", "jobName"}, {"help\n", "send dump@"}, {strings.Repeat("x", 1000) + "\n", "send dump@"},
		{"dump@hello\n", "/shop/hello/instances/ip1@-@4711 | jobInstanceId: ip1@-@4711, serverIp: ip1"}, {"dump@hello\r\n", whole},
	} {
		answer := ask(c.send)
		require.Contains(t, answer, c.want, c.send)
	}
	require.Equal(t, whole, ask("dump@hello\n"))
}
