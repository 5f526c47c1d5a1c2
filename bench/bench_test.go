package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/elasticron/elasticron/bench/internal/contest"
	"github.com/elasticron/elasticron/internal/testbed"
	"github.com/elasticron/elasticron/internal/testbed/zkserver"
)

// TestMain lets this test binary be the children of bench.
func TestMain(m *testing.M) {
	if os.Getenv(envRole) != "" {
		os.Exit(run())
	}
	os.Exit(m.Run())
}

// quickly runs bench with -quick, and returns what it prints.
func quickly(t *testing.T, args ...string) string {
	t.Helper()
	dir := t.TempDir()
	var out, log bytes.Buffer
	err := bench(t.Context(), append([]string{"-quick", "-fsync=false", "-dir", dir}, args...), &out, &log)
	require.NoError(t, err, log.String())
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left, "a server's folder is left")
	return out.String()
}

// cells are those of the row that begins with a name, in the table with a title.
func cells(t *testing.T, printed, title, name string) []string {
	t.Helper()
	_, under, ok := strings.Cut(printed, "### "+title)
	require.True(t, ok, "no table %q in\n%s", title, printed)
	under, _, _ = strings.Cut(under, "### ")
	for line := range strings.Lines(under) {
		if fields := strings.Split(line, "|"); len(fields) > 2 && strings.TrimSpace(fields[1]) == name {
			for i := range fields {
				fields[i] = strings.TrimSpace(fields[i])
			}
			return fields[2 : len(fields)-1]
		}
	}
	require.Fail(t, "no row", "%q in\n%s", name, under)
	return nil
}

func TestEachScenarioOnEtcd(t *testing.T) {
	for _, sc := range scenarios() {
		t.Run(sc.name, func(t *testing.T) {
			t.Parallel() // what they measure means nothing
			printed := quickly(t, "-scenario", sc.name)
			for _, contender := range sc.contenders[onEtcd] {
				row := cells(t, printed, sc.title, contender)
				require.Len(t, row, len(sc.columns)+2)
				if contender == goEtcdCron {
					require.Regexp(t, "^not measured", row[0])
					continue
				}
				none := []string{"", "–", "0", "0.00"}
				if contender == bareWatching { // of a hundred jobs it may be told before who asks is
					none = none[:2]
				}
				require.NotContains(t, none, row[0], "%s has no figure", contender)
				require.Equal(t, "1", row[len(row)-1])
			}
		})
	}
}

func TestOnZooKeeper(t *testing.T) {
	svc, err := startZooKeeper(t.Context(), serverConfig{Dir: t.TempDir()})
	if unavailable := (*zkserver.UnavailableError)(nil); errors.As(err, &unavailable) && os.Getenv(testbed.RequiredEnv) == "" {
		t.Skip("ZooKeeper cannot run:", err)
	}
	require.NoError(t, err)
	require.NoError(t, svc.close())
	printed := quickly(t, "-registry", "zookeeper", "-scenario", "recorded,items-100")
	for _, contender := range []string{ours, bareSingle, bareShared} {
		row := cells(t, printed, "Recorded runs a second", contender)
		require.NotContains(t, []string{"", "–", "0"}, row[0], contender)
	}
	require.NotContains(t, []string{"", "–", "0"}, cells(t, printed, "One job of 100 items", ours)[0])
}

func TestResultsAreAddedToAFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "all.jsonl")
	for range 2 {
		quickly(t, "-scenario", "items-100", "-contender", "Elast", "-results", file)
	}
	records, err := load(file)
	require.NoError(t, err)
	require.Len(t, records, 6)
	var out bytes.Buffer
	require.NoError(t, bench(t.Context(), []string{"-results", file, "-tables"}, &out, os.Stderr))
	require.Contains(t, out.String(), "WITHOUT fsync")
	row := cells(t, out.String(), "One job of 100 items, each second", ours)
	require.Equal(t, "2", row[len(row)-1])
}

func TestContendersByName(t *testing.T) {
	sc := scenario{contenders: map[string][]string{onEtcd: {ours, oursAgain, goCronAlone, goEtcdCron}}}
	for chosen, want := range map[string][]string{
		"": {ours, oursAgain, goCronAlone}, "Elasticron": {ours}, "Elasticron, f": {oursAgain}, "Elast;gocron": {ours, oursAgain, goCronAlone}, "x": {},
	} {
		s, err := parse([]string{"-contender", chosen}, io.Discard)
		require.NoError(t, err)
		require.Equal(t, want, s.wanted(sc), chosen)
	}
}

func TestProfiles(t *testing.T) {
	dir := t.TempDir()
	for _, args := range [][]string{{"-scenario", "recorded", "-from", "20", "-contender", ours}, {"-scenario", "due-1000", "-contender", oursAgain}} {
		var out bytes.Buffer
		require.NoError(t, bench(t.Context(), append(args, "-quick", "-profile", dir), &out, os.Stderr))
		require.Contains(t, out.String(), "client:")
		for _, name := range []string{"client.pprof", "server.pprof"} {
			content, err := os.ReadFile(filepath.Join(dir, name))
			require.NoError(t, err)
			require.NotEmpty(t, content, name)
			require.NoError(t, os.Remove(filepath.Join(dir, name)))
		}
	}
}

func TestMediansAndRatios(t *testing.T) {
	require.Equal(t, figures{"a": 2, "b": 1.5}, medians([]figures{{"a": 9, "b": 1}, {"a": 1, "b": 2}, {"a": 2}}))
	more, less := column{key: "a"}, column{key: "a", less: true}
	require.Equal(t, "2.00", ratio(more, figures{"a": 4}, figures{"a": 2}))
	require.Equal(t, "0.50", ratio(less, figures{"a": 4}, figures{"a": 2}))
	require.Equal(t, "–", ratio(less, figures{"a": 4}, figures{}))
	require.Equal(t, "1,234,007", thousands(1234007))
}

func TestKeptUp(t *testing.T) {
	m := measurement{due: 1000}
	for _, c := range []struct {
		begun, onTime int
		want          bool
	}{{1000, 1000, true}, {990, 990, true}, {989, 1000, false}, {1000, 989, false}, {2000, 990, true}} {
		m.Begun, m.OnTime = c.begun, c.onTime
		require.Equal(t, c.want, m.keptUp(), "%+v", c)
	}
}

func TestWhoCatchesUpIsLookedAtAgain(t *testing.T) {
	m := measurement{due: 1000}
	for _, c := range []struct {
		begun, onTime int
		want          bool
	}{{1000, 1000, false}, {2000, 995, false}, {1011, 0, true}, {1010, 0, false}, {900, 900, false}} {
		m.Begun, m.OnTime = c.begun, c.onTime
		require.Equal(t, c.want, m.catchesUp(), "%+v", c)
	}
}

func TestFlagsThatAreWrong(t *testing.T) {
	for _, args := range [][]string{
		{"-scenario", "x"}, {"-registry", "x"}, {"x"}, {"-tables"}, {"-repetitions", "0"}, {"-profile", "x"}, {"-profile", "x", "-scenario", "recorded"},
		{"-profile", "x", "-scenario", "steady"}, {"-profile", "x", "-scenario", "steady", "-contender", "go"},
	} {
		require.Error(t, bench(t.Context(), args, &bytes.Buffer{}, &bytes.Buffer{}), "%v", args)
	}
}

func TestAContenderThatCannotReachItsServer(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	p, err := spawn(self, roleContender)
	require.NoError(t, err)
	defer p.end(0)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	require.NoError(t, p.orders.Encode(contest.Config{Contender: ours, Registry: onEtcd, Server: "127.0.0.1:1"}))
	_, err = p.answer(ctx)
	require.ErrorContains(t, err, "registry unavailable")
}

// A busyStore answers every other commit in time, and every other renewal.
type busyStore struct {
	store

	asked, renewed, done int
	stop                 context.CancelFunc
}

func (b *busyStore) commit(_ context.Context, jobs []bareJob) error {
	if b.asked++; b.asked%2 == 1 {
		return rpctypes.ErrTimeout
	}
	for i := range jobs {
		if jobs[i].at != 7 {
			return errBareRefused
		}
	}
	if b.done++; b.done == 3 {
		b.stop()
	}
	return nil
}

func (b *busyStore) renew(_ context.Context, jobs []bareJob) error {
	for i := range jobs {
		jobs[i].at = 7
	}
	if b.renewed++; b.renewed%2 == 1 {
		return rpctypes.ErrTimeoutDueToLeaderFail
	}
	return nil
}

// A server that does not answer in its time is asked again, and ends no measurement.
func TestTheBareClientOutlivesABusyServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s := &busyStore{stop: cancel}
		b := &bare{store: s, shared: 2, jobs: make([]bareJob, 2)}
		runs, err := b.Write(ctx)
		require.NoError(t, err)
		require.Equal(t, 3, runs)
		require.Equal(t, 6, s.renewed)
	})
}
