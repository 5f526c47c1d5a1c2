package postgres_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/internal/testbed"
	"github.com/elasticron/elasticron/internal/testbed/harness"
	"github.com/elasticron/elasticron/internal/testbed/pgserver"
	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/postgres"
)

// at makes a registry know these hosts.
func at(hosts ...string) func(*postgres.Config) {
	return func(c *postgres.Config) { c.Hosts = hosts }
}

// lasting makes sessions last so long.
func lasting(d time.Duration) func(*postgres.Config) {
	return func(c *postgres.Config) { c.SessionTimeout = d }
}

// proxy is a way to a server of its own; what is silent behind it stays so.
func proxy(t *testing.T, bed *testbed.Postgres) *testbed.Proxy {
	t.Helper()
	p, err := testbed.NewProxy(bed.Addr())
	require.NoError(t, err)
	t.Cleanup(p.Close)
	return p
}

// switchedOff is an address at which connections are neither made nor refused, as at that of a
// machine that is off.
func switchedOff(t *testing.T) string {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, syscall.Close(fd)) })
	require.NoError(t, syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	require.NoError(t, syscall.Listen(fd, 0))
	name, err := syscall.Getsockname(fd)
	require.NoError(t, err)
	addr := fmt.Sprintf("127.0.0.1:%d", name.(*syscall.SockaddrInet4).Port)
	for range 10 { // who is not accepted fills the queue
		conn, err := net.DialTimeout("tcp", addr, 200*time.Millisecond)
		if err != nil {
			return addr
		}
		t.Cleanup(func() { conn.Close() })
	}
	require.FailNow(t, "everybody gets a connection")
	return ""
}

func TestTheFirstHostIsSilentlyDead(t *testing.T) {
	for name, dead := range map[string]func(*testing.T, *testbed.Postgres) string{
		"NoConnection": func(t *testing.T, _ *testbed.Postgres) string {
			t.Helper()
			return switchedOff(t)
		},
		"NoAnswer": func(t *testing.T, bed *testbed.Postgres) string {
			t.Helper()
			p := proxy(t, bed)
			t.Cleanup(p.Blackhole(testbed.Both))
			return p.Addr()
		},
	} {
		t.Run(name, func(t *testing.T) {
			bed := start(t)
			reg, _ := connect(t, bed, at(dead(t, bed), bed.Addr()), lasting(time.Minute))
			requireBell(t, reg, bed)
		})
	}
}

// The same is true of addresses that a name has.
func TestAnAddressOfTheHostIsSilentlyDead(t *testing.T) {
	bed := start(t)
	names := map[string][]string{"db": {switchedOff(t), bed.Addr()}}
	addr, err := postgres.Choose(within(t, 20*time.Second), postgres.Config{
		Hosts: []string{"gone:5432", "db:5432"}, Database: "postgres", Namespace: "test", Username: pgserver.User,
	}, func(_ context.Context, name string) ([]string, error) {
		if found := names[name]; found != nil {
			return found, nil
		}
		return nil, fmt.Errorf("no such host: %s", name)
	})
	require.NoError(t, err)
	require.Equal(t, bed.Addr(), addr)
}

// A connection that serves is not given up for one that may not be had.
func TestConnectionsHaveNoAge(t *testing.T) {
	bed := start(t)
	ages, err := postgres.Ages(within(t, 20*time.Second), postgres.Config{
		Hosts: []string{bed.Addr()}, Database: "postgres", Namespace: "test", Username: pgserver.User,
		SessionTimeout: time.Minute, DialTimeout: 20 * time.Second, MaxConns: 5,
	})
	require.NoError(t, err)
	require.Equal(t, []time.Duration{0, 0, 0}, ages)
}

// A standby is asked again, while the host that is silent may still answer.
func TestPromotionWhileAHostIsSilent(t *testing.T) {
	bed := start(t)
	connect(t, bed)
	second := standby(t, bed, "second")
	opened := make(chan error, 1)
	dead := switchedOff(t)
	ctx := within(t, 60*time.Second)
	bed.Kill()
	go func() {
		reg, err := postgres.Open(ctx, postgres.Config{
			Hosts: []string{dead, second.Addr()}, Database: "postgres", Namespace: "test", Username: pgserver.User, DialTimeout: 30 * time.Second,
		})
		if err == nil {
			err = reg.Close()
		}
		opened <- err
	}()
	require.NoError(t, second.Promote(ctx))
	select {
	case err := <-opened:
		require.NoError(t, err)
	case <-time.After(20 * time.Second):
		require.FailNow(t, "it is not asked again")
	}
}

// silence is the session timeout of those whose server falls silent.
const silence = 12 * time.Second

// deaths are ways for a server to fall silent while another serves.
var deaths = map[string]func(*testing.T, *testbed.Postgres) (hosts []string, die func()){
	// The address that the first served at is silent from then on.
	"AnotherAddress": func(t *testing.T, bed *testbed.Postgres) ([]string, func()) {
		t.Helper()
		first, second := proxy(t, bed), proxy(t, bed)
		up := second.Refuse()
		return []string{first.Addr(), second.Addr()}, func() {
			t.Cleanup(first.Blackhole(testbed.Both))
			up()
		}
	},
	// The address moves, or what is between forgets the connections.
	"TheSameAddress": func(t *testing.T, bed *testbed.Postgres) ([]string, func()) {
		t.Helper()
		client := bed.Client()
		return client.Addrs(), func() { t.Cleanup(client.Strand()) }
	},
	// A standby is promoted a while later.
	"AStandby": func(t *testing.T, bed *testbed.Postgres) ([]string, func()) {
		t.Helper()
		second := standby(t, bed, "second")
		synchronous(t, bed, "second")
		return []string{bed.Addr(), second.Addr()}, func() {
			require.NoError(t, bed.Server.Pause())
			promoted := make(chan error, 1)
			time.AfterFunc(silence*3/8, func() { promoted <- second.Promote(within(t, 20*time.Second)) })
			t.Cleanup(func() { require.NoError(t, <-promoted) })
		}
	},
}

// A session goes on when the server falls silent and another serves.
func TestASessionOutlivesASilentDeath(t *testing.T) {
	t.Parallel() // with the others that wait
	for name, prepare := range deaths {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bed := start(t)
			hosts, die := prepare(t, bed)
			outlives(t, bed, die, at(hosts...))
		})
	}
}

func TestASessionOutlivesASilentDeathWithTLS(t *testing.T) {
	t.Parallel()
	authority := harness.NewAuthority(t, "authority")
	cert, key := authority.Issue("server")
	files := map[string]string{}
	for name, path := range map[string]string{"server.crt": cert, "server.key": key} {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		files[name] = string(text)
	}
	bed := testbed.StartPostgres(t, pgserver.Options{Settings: []string{"ssl = on"}, Files: files})
	hosts, die := deaths["AnotherAddress"](t, bed)
	outlives(t, bed, die, at(hosts...), func(c *postgres.Config) { c.CAFile = authority.CA() })
}

// What waits longer than heartbeats do is not dead.
func TestWhatWaitsLongIsNotCut(t *testing.T) {
	bed := start(t)
	ctx := within(t, 60*time.Second)
	store, doubt, err := postgres.OpenStore(ctx, postgres.Config{
		Hosts: []string{bed.Addr()}, Database: "postgres", Namespace: "test", Username: pgserver.User,
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	require.NoError(t, store.Begin(ctx, "s", time.Minute))
	conn, err := bed.Connect(ctx, "postgres")
	require.NoError(t, err)
	defer conn.Close(ctx)
	tx, err := conn.Begin(ctx)
	require.NoError(t, err)
	_, err = tx.Exec(ctx, "SELECT FROM elasticron.clock FOR UPDATE")
	require.NoError(t, err)
	committed := make(chan error, 1)
	go func() {
		_, err := store.Commit(ctx, "s", []registry.Op{registry.Create("/a", nil)})
		committed <- err
	}()
	eventually(t, 20*time.Second, "it waits", func() bool { return waits(t, bed, "SELECT revision") == 1 })
	doubt()
	doubted := time.Now()
	eventually(t, 20*time.Second, "it waits on", func() bool { return time.Since(doubted) > 2*time.Second })
	require.NoError(t, tx.Rollback(ctx))
	require.NoError(t, <-committed)
}

func outlives(t *testing.T, bed *testbed.Postgres, die func(), change ...func(*postgres.Config)) {
	t.Helper()
	reg, _ := connect(t, bed, append(change, lasting(silence))...)
	ses, err := reg.Open(within(t, 20*time.Second))
	require.NoError(t, err)
	f := follow(t, ses)
	require.NoError(t, f.Watcher.Add("/a", registry.Children))
	commit(t, ses, registry.Create("/a", nil), registry.CreateEphemeral("/a/here", nil))
	f.Until(10*time.Second, "the present", func() bool { return f.Nodes["/a/here"].Exists() })
	use(t, ses)
	before := ses.Deadline()
	eventually(t, silence, "a heartbeat", func() bool { return ses.Deadline().After(before) })

	die()
	died := time.Now()
	cut := make(chan error, 2)
	for range cap(cut) {
		go func() {
			_, err := ses.Commit(context.Background(), registry.Set("/a", []byte("x"), registry.AnyVersion))
			cut <- err
		}()
	}
	nodes, err := ses.Get(within(t, silence), "/a/here")
	require.NoError(t, err, "reads go on")
	require.True(t, nodes[0].Owned)
	for range cap(cut) {
		select {
		case <-cut: // with whatever outcome
		case <-time.After(silence):
			require.FailNow(t, "a commit waits for a server that is dead")
		}
	}
	commit(t, ses, registry.CreateEphemeral("/a/there", nil))
	f.Until(silence, "the watcher goes on", func() bool { return f.Nodes["/a/there"].Exists() })
	eventually(t, 2*silence, "a timeout is over", func() bool { return time.Since(died) > silence })
	require.NoError(t, ses.Err())
	require.Positive(t, time.Until(ses.Deadline()))
}

// use has a session use several connections at once.
func use(t *testing.T, ses registry.Session) {
	t.Helper()
	read := make(chan error, 8)
	for range cap(read) {
		go func() {
			_, err := ses.Get(context.Background(), "/a")
			read <- err
		}()
	}
	for range cap(read) {
		require.NoError(t, <-read)
	}
}

// A connection whose answer was given up makes room for another at once.
func TestWhatIsGivenUpMakesRoom(t *testing.T) {
	bed := start(t)
	ses, client := open(t, bed, lasting(time.Minute), func(c *postgres.Config) { c.MaxConns = 2 })
	commit(t, ses, registry.Create("/a", nil))
	defer client.Strand()()
	_, err := ses.Get(within(t, 200*time.Millisecond), "/a")
	require.ErrorIs(t, err, registry.ErrUnavailable)
	nodes, err := ses.Get(within(t, 10*time.Second), "/a")
	require.NoError(t, err)
	require.True(t, nodes[0].Exists())
}

// waits counts what waits at the server, in a statement that begins so, for a lock or for the standby.
func waits(t *testing.T, bed *testbed.Postgres, begins string) (n int) {
	t.Helper()
	ask(t, bed, `SELECT count(*) FROM pg_stat_activity WHERE (wait_event = 'SyncRep' OR wait_event_type = 'Lock')
		AND query LIKE '`+begins+`%'`, &n)
	return n
}

// alone makes the server's commits wait: the standby that has to confirm them is gone.
func alone(t *testing.T, bed *testbed.Postgres) {
	t.Helper()
	second := standby(t, bed, "second")
	synchronous(t, bed, "second")
	second.Kill()
	t.Cleanup(func() {
		require.NoError(t, bed.Exec(within(t, 10*time.Second), "postgres", "ALTER SYSTEM RESET synchronous_standby_names"))
		require.NoError(t, bed.Exec(within(t, 10*time.Second), "postgres", "SELECT pg_reload_conf()"))
	})
}

// A commit that is given up is not seen before its standby has it: the promotion would take it back.
func TestACommitThatIsGivenUpStaysUnseen(t *testing.T) {
	bed := start(t)
	ses, _ := open(t, bed, lasting(time.Minute))
	alone(t, bed)
	_, err := ses.Commit(within(t, time.Second), registry.Create("/b", nil))
	require.ErrorIs(t, err, registry.ErrUncertain)
	given := time.Now()
	eventually(t, 20*time.Second, "it waits on", func() bool {
		var seen bool
		ask(t, bed, "SELECT EXISTS (SELECT FROM elasticron.nodes WHERE path = '/b')", &seen)
		require.False(t, seen, "what no standby has")
		return time.Since(given) > 2*time.Second
	})
	require.Equal(t, 1, waits(t, bed, "SELECT revision"))
}

// What is given up does not pile up at the server while it waits for a lock.
func TestWhatIsGivenUpLeavesTheServer(t *testing.T) {
	bed := start(t)
	ses, _ := open(t, bed, lasting(time.Minute))
	ctx := within(t, 60*time.Second)
	conn, err := bed.Connect(ctx, "postgres")
	require.NoError(t, err)
	defer conn.Close(ctx)
	tx, err := conn.Begin(ctx)
	require.NoError(t, err)
	_, err = tx.Exec(ctx, "SELECT FROM elasticron.clock FOR UPDATE")
	require.NoError(t, err)
	for range 5 {
		_, err := ses.Commit(within(t, 200*time.Millisecond), registry.Create("/b", nil))
		require.ErrorIs(t, err, registry.ErrUncertain)
	}
	began := time.Now()
	_, err = ses.Commit(ctx, registry.Create("/b", nil))
	require.ErrorIs(t, err, registry.ErrUnavailable, "after %v", time.Since(began))
	eventually(t, 20*time.Second, "they are gone", func() bool { return waits(t, bed, "SELECT") == 0 })
	require.NoError(t, tx.Rollback(ctx))
	commit(t, ses, registry.Create("/b", nil))
}

// Nor do the sessions that nobody has.
func TestSessionsThatNobodyHasLeaveTheServer(t *testing.T) {
	bed := start(t)
	reg, _ := connect(t, bed, lasting(time.Second))
	alone(t, bed)
	_, err := reg.Open(within(t, 6*time.Second))
	require.ErrorIs(t, err, registry.ErrUnavailable)
	// A dozen were begun. What is cancelled may be told too late, or too early.
	eventually(t, 5*time.Second, "they are gone", func() bool { return waits(t, bed, "INSERT") <= 2 })
}
