package main

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/elasticron/elasticron/core"
	"github.com/elasticron/elasticron/core/event"
	"github.com/elasticron/elasticron/internal/history"
	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestASeedDrawsTheSameFaults(t *testing.T) {
	drawn := func(seed uint64, servers int) []drawn { return draw(rand.New(rand.NewPCG(seed, 0)), servers, 3) }
	first, again := drawn(7, 3), drawn(7, 3)
	require.Equal(t, first, again)
	require.NotEqual(t, drawn(7, 3), drawn(8, 3))
	each := map[string]int{}
	for _, d := range drawn(7, 3) {
		each[d.kind]++
	}
	for _, k := range kinds() {
		require.Equal(t, 3, each[k.name], k.name)
	}
	for _, d := range drawn(7, 1) {
		require.NotEqual(t, "lose leader", d.kind)
	}
	all := drawn(7, 3)
	require.Equal(t, []string{"change in calm", "kill in calm", "clock set in calm"}, []string{all[len(kinds())-3].kind, all[len(kinds())-2].kind, all[len(kinds())-1].kind})
}

func TestTimetables(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 300_000_000, time.UTC)
	for cron, want := range map[string]time.Duration{
		"@every 200ms": 100 * time.Millisecond, "@every 300ms": 300 * time.Millisecond,
		"* * * * * ?": 700 * time.Millisecond, "0/2 * * * * ?": 1700 * time.Millisecond,
	} {
		table, err := timetable(history.Schedule{Cron: cron})
		require.NoError(t, err, cron)
		next, ok := table.Next(at)
		require.True(t, ok, cron)
		require.Equal(t, want, next.Sub(at), cron)
	}
	table, err := timetable(history.Schedule{Cron: "@delay 300ms"})
	require.NoError(t, err)
	require.Equal(t, 300*time.Millisecond, table.Delay)
	table, err = timetable(history.Schedule{Cron: restCron})
	require.NoError(t, err)
	_, ok := table.Next(at)
	require.False(t, ok)
	for _, bad := range []string{"@every x", "@delay x", "often"} {
		_, err = timetable(history.Schedule{Cron: bad})
		require.Error(t, err, bad)
	}
}

// A worker in this process, on memory and in fake time: what it writes down is sound,
// and names the session of each life.
func TestAWorkersHistory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := memory.NewServer(memory.Config{SessionTimeout: sessionTimeout})
		reg := srv.Registry(namespace)
		defer reg.Close()
		var out bytes.Buffer
		w := &worker{instances: map[string]string{}, owned: map[string]history.Record{}, task: workerTask{Who: "w0.1", Name: "w0", IP: "127.0.0.1"}}
		w.out = history.NewWriter(&out, "w0.1", func() (time.Duration, time.Time) { return common(), w.now() })
		w.reg = watch(reg, w.out)
		s, err := newScheduler(w, w.reg, nil)
		require.NoError(t, err)
		require.NoError(t, start(t.Context(), s))
		<-time.After(5 * time.Second)
		w.out.Write(history.Record{Kind: history.Stopping})
		require.NoError(t, s.Stop(t.Context()))
		synctest.Wait()

		records, err := history.Read(&out)
		require.NoError(t, err)
		count := map[history.Kind]int{}
		for _, r := range records {
			count[r.Kind]++
			if r.Kind == history.Entered {
				require.NotEmpty(t, r.Session, "%v", r.String())
				require.Greater(t, r.Deadline, r.At, "%v", r.String())
				require.Positive(t, r.Epoch, "%v", r.String())
			}
		}
		require.Greater(t, count[history.Entered], 500)
		require.Equal(t, count[history.Entered], count[history.Returned])
		require.Equal(t, count[history.Entered], count[history.Ended])
		require.Equal(t, 1, count[history.Opened])
		require.Equal(t, 1, count[history.Closing])
		require.Zero(t, count[history.Lost])
		for _, k := range []history.Kind{history.Registered, history.Started, history.Stopped} {
			require.Equal(t, len(jobs), count[k], k)
		}
		require.GreaterOrEqual(t, count[history.Called], 5)
		require.Empty(t, history.Check(records, rules).Violations)
	})
}

func TestEventsAreTranslated(t *testing.T) {
	var out bytes.Buffer
	w := &worker{instances: map[string]string{}, owned: map[string]history.Record{}}
	w.out = history.NewWriter(&out, "w", func() (time.Duration, time.Time) { return 1, time.Time{} })
	due := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, e := range []event.Event{
		event.Started{Job: "a", Instance: "i"},
		event.ItemsChanged{Job: "a", Items: []int{1, 2}, Total: 3},
		event.ItemEnded{Job: "a", Epoch: 2, Total: 3, Item: 1, Due: due, Err: io.EOF},
		event.ItemCut{Job: "a", Epoch: 2, Item: 1, Due: due, Instance: "dead"},
		event.ItemsSkipped{Job: "a", Epoch: 2, Items: []int{1}, First: due, Due: due, Count: 1, Reason: event.SkipDisabled},
		event.Stopped{Job: "a", Instance: "i", Reason: event.StopFailed, Err: core.ErrStopped},
		event.LeaderChanged{Job: "a", Leader: "i", Self: true},
		event.ItemsChanged{Job: "b", Items: []int{4}, Total: 5},
		event.Started{Job: "b", Instance: "j"},
		event.SessionLost{},
		event.Started{Job: "b", Instance: "k"},
	} {
		w.tell(e)
	}
	got, err := history.Read(&out)
	require.NoError(t, err)
	require.Equal(t, []history.Record{
		{Kind: history.Started, At: 1, Who: "w", Job: "a", Instance: "i"},
		{Kind: history.Owns, At: 1, Who: "w", Job: "a", Items: []int{1, 2}, Total: 3, Instance: "i"},
		{Kind: history.Ended, At: 1, Who: "w", Job: "a", Epoch: 2, Total: 3, Item: 1, Due: due, Err: "EOF"},
		{Kind: history.Cut, At: 1, Who: "w", Job: "a", Epoch: 2, Item: 1, Due: due, Of: "dead"},
		{Kind: history.Skipped, At: 1, Who: "w", Job: "a", Epoch: 2, Items: []int{1}, First: due, Due: due, Count: 1, Reason: "disabled"},
		{Kind: history.Stopped, At: 1, Who: "w", Job: "a", Instance: "i", Reason: string(event.StopFailed), Err: core.ErrStopped.Error()},
		{Kind: history.Led, At: 1, Who: "w", Job: "a", Of: "i", Self: true},
		{Kind: history.Owns, At: 1, Who: "w", Job: "b", Items: []int{4}, Total: 5},
		{Kind: history.Started, At: 1, Who: "w", Job: "b", Instance: "j"},
		{Kind: history.Owns, At: 1, Who: "w", Job: "b", Items: []int{4}, Total: 5, Instance: "j"},
		{Kind: history.Started, At: 1, Who: "w", Job: "b", Instance: "k"},
	}, got)
}

// A session that its service ended is told as lost, with the Deadline that it had.
func TestALostSessionIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := memory.NewServer(memory.Config{SessionTimeout: sessionTimeout})
		reg := srv.Registry(namespace)
		defer reg.Close()
		var out bytes.Buffer
		w := watch(reg, history.NewWriter(&out, "w", func() (time.Duration, time.Time) { return common(), time.Now() }))
		ses, err := w.Open(t.Context())
		require.NoError(t, err)
		_, err = ses.Commit(t.Context(), registry.CreateEphemeral("/a", nil))
		require.NoError(t, err)
		srv.Expire(ses.ID())
		<-ses.Done()
		synctest.Wait()
		_ = ses.Close(context.Background())
		text := out.String()
		require.Contains(t, text, `"kind":"opened"`)
		require.Contains(t, text, `"kind":"lost"`)
		require.Contains(t, text, registry.ErrSessionLost.Error())
	})
}

func TestVerdict(t *testing.T) {
	full := func() table {
		t := table{Tally: history.Tally{
			Fires: leastFires, Faults: map[string]history.Hits{}, Asked: map[string]int{"succeeded": leastAsked},
			Judged: map[history.Invariant]int{history.Rounds: leastHeard, history.Bound: leastBound}, Off: leastOff,
		}}
		for _, k := range kinds() {
			t.Faults[k.name] = history.Hits{Begun: 3, Hit: 1}
		}
		return t
	}
	good := full()
	require.NoError(t, good.verdict(wantedOf(settings{sizes: []int{1, 3}})))
	deaf := full()
	deaf.Faults["cut"] = history.Hits{Begun: 3}
	require.ErrorContains(t, deaf.verdict(wantedOf(settings{sizes: []int{3}})), "cut never hit")
	alone := full()
	delete(alone.Faults, "lose leader")
	require.NoError(t, alone.verdict(wantedOf(settings{sizes: []int{1}})))
	require.ErrorContains(t, alone.verdict(wantedOf(settings{sizes: []int{3}})), "lose leader never hit")
	idle := full()
	idle.Fires--
	void := (*voidError)(nil)
	require.ErrorAs(t, idle.verdict(wantedOf(settings{sizes: []int{3}})), &void)
	unasked := full()
	unasked.Asked = nil
	require.ErrorContains(t, unasked.verdict(wantedOf(settings{sizes: []int{3}})), "items that ran for a request")
	unheard := full()
	unheard.Judged = nil
	require.ErrorContains(t, unheard.verdict(wantedOf(settings{sizes: []int{3}})), "calls of listeners to rounds")
	unbound := full()
	unbound.Judged[history.Bound]--
	require.ErrorContains(t, unbound.verdict(wantedOf(settings{sizes: []int{3}})), "runs with static sharding")
	right := full()
	right.Off = 0
	require.ErrorContains(t, right.verdict(wantedOf(settings{sizes: []int{3}})), "clocks that were found to be off")
	broken := full()
	broken.broken, broken.ways = map[history.Invariant]int{history.Overlap: 1}, map[string]int{"overlap: two at once": 1}
	err := broken.verdict(wantedOf(settings{sizes: []int{3}}))
	require.ErrorIs(t, err, errBroken)
	require.ErrorContains(t, err, "1 violations; 1 overlap: two at once")
	troubled := full()
	troubled.troubles = []string{"w0.1 ended by itself"}
	err = troubled.verdict(wantedOf(settings{sizes: []int{3}}))
	require.ErrorIs(t, err, errBroken)
	require.ErrorContains(t, err, "trouble: w0.1 ended by itself")
	var sum table
	sum.add(good)
	sum.add(good)
	require.Equal(t, 2*leastFires, sum.Fires)
	var text strings.Builder
	sum.write(&text)
	require.Contains(t, text.String(), "violations")
}

func TestParse(t *testing.T) {
	s, err := parse([]string{"-duration", "3m", "-registry", "zookeeper", "-seed", "5", "-servers", "3"})
	require.NoError(t, err)
	require.Equal(t, settings{duration: 3 * time.Minute, kinds: []string{onZooKeeper}, seed: 5, sizes: []int{3}, workers: 5}, s)
	for _, bad := range [][]string{{"-registry", "x"}, {"-registry", "etcd,etcd"}, {"-registry", "postgres,x"}, {"-servers", "2"}, {"-servers", "x"}, {"-workers", "1"}, {"-duration", "1s"}} {
		_, err := parse(bad)
		require.Error(t, err, "%v", bad)
	}
	require.NotErrorIs(t, err, errBroken)
}

// A worker notices that it reads less than was acknowledged to it.
func TestASessionNoticesLostWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := memory.NewServer(memory.Config{})
		reg := srv.Registry(namespace)
		defer reg.Close()
		var out bytes.Buffer
		inner, err := reg.Open(t.Context())
		require.NoError(t, err)
		back := &setBack{Session: inner}
		w := watch(&opens{Registry: reg, session: back}, history.NewWriter(&out, "w", func() (time.Duration, time.Time) { return 1, time.Now() }))
		ses, err := w.Open(t.Context())
		require.NoError(t, err)
		_, err = ses.Commit(t.Context(), registry.Create("/a", nil), registry.Create("/b", nil))
		require.NoError(t, err)
		for _, back.by = range []registry.Revision{0, 1, 1} {
			_, err = ses.Commit(t.Context(), registry.Set("/a", []byte("x"), registry.AnyVersion), registry.Delete("/b", registry.AnyVersion))
			require.True(t, err == nil || back.by > 0)
			_, err = ses.Get(t.Context(), "/a", "/b", "/c")
			require.NoError(t, err)
		}
		require.NoError(t, ses.Close(t.Context()))
		synctest.Wait()
		records, err := history.Read(&out)
		require.NoError(t, err)
		require.Equal(t, 1, history.Check(records, rules).Tally.LostWrites, "it is told once")
	})
}

// opens is a registry with one session.
type opens struct {
	registry.Registry
	session registry.Session
}

func (o *opens) Open(context.Context) (registry.Session, error) { return o.session, nil }

// setBack is a session that reads what stood some revisions ago.
type setBack struct {
	registry.Session
	by registry.Revision
}

func (s *setBack) Get(ctx context.Context, paths ...string) ([]registry.Node, error) {
	nodes, err := s.Session.Get(ctx, paths...)
	for i := range nodes {
		nodes[i].Modified -= s.by
	}
	return nodes, err
}

// The witness is content with servers that keep what they acknowledged, through lost
// sessions too, and notices when a count goes back.
func TestTheWitnessNoticesLostWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := memory.NewServer(memory.Config{SessionTimeout: sessionTimeout})
		reg := srv.Registry(namespace)
		defer reg.Close()
		var out bytes.Buffer
		w := &witness{client: &client{reg: reg}, out: history.NewWriter(&out, "driver", func() (time.Duration, time.Time) { return 1, time.Now() })}
		ctx, stop := context.WithCancel(t.Context())
		var work sync.WaitGroup
		work.Go(func() { w.count(ctx) })
		<-time.After(time.Second)
		ses, err := w.client.session(ctx)
		require.NoError(t, err)
		srv.Expire(ses.ID())
		<-time.After(time.Second)
		require.NoError(t, w.look(ctx))
		require.Greater(t, w.counts(), int64(50))
		require.NotContains(t, out.String(), history.LostWrites)

		thief, err := reg.Open(ctx)
		require.NoError(t, err)
		_, err = thief.Commit(ctx, registry.Set(witnessPath, []byte("7"), registry.AnyVersion))
		require.NoError(t, err)
		<-time.After(time.Second)
		stop()
		work.Wait()
		records, err := history.Read(&out)
		require.NoError(t, err)
		require.Greater(t, history.Check(records, rules).Tally.LostWrites, 40)
		require.NoError(t, thief.Close(context.Background()))
	})
}

// Counts that are acknowledged while somebody looks are not taken for lost.
func TestTheWitnessCountsWhileSomebodyLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := memory.NewServer(memory.Config{}).Registry(namespace)
		defer reg.Close()
		inner, err := reg.Open(t.Context())
		require.NoError(t, err)
		_, err = inner.Commit(t.Context(), registry.Create(witnessPath, []byte("7")))
		require.NoError(t, err)
		var out bytes.Buffer
		w := &witness{out: history.NewWriter(&out, "driver", func() (time.Duration, time.Time) { return 1, time.Now() })}
		busy := &readsThen{Session: inner, then: func() { w.acknowledged(8) }}
		w.client = &client{reg: &opens{Registry: reg, session: busy}}
		w.acknowledged(7)
		require.NoError(t, w.look(t.Context()))
		require.Empty(t, out.String())
		require.EqualValues(t, 8, w.counts())
		busy.then = func() { w.acknowledged(9) }
		require.NoError(t, w.look(t.Context()))
		require.Contains(t, out.String(), "the witness's count 7 stands, 8 was acknowledged")
		require.EqualValues(t, 9, w.counts(), "whether that one is lost too, the next look tells")
		require.NoError(t, inner.Close(t.Context()))
	})
}

// readsThen is a session whose reads take until something has happened.
type readsThen struct {
	registry.Session
	then func()
}

func (s *readsThen) Get(ctx context.Context, paths ...string) ([]registry.Node, error) {
	nodes, err := s.Session.Get(ctx, paths...)
	s.then()
	return nodes, err
}

// A server that shows a node as it was before another one showed it changed has lost that change, unless it catches up
// by the next round.
func TestTheCensusNoticesServersThatDiffer(t *testing.T) {
	var out bytes.Buffer
	c := &census{
		out:   history.NewWriter(&out, "driver", func() (time.Duration, time.Time) { return 1, time.Now() }),
		addrs: []string{"a", "b", "c"}, told: map[lag]struct{}{},
	}
	at := func(x, y registry.Revision) counted { return counted{"/x": x, "/y": y} }
	for _, servers := range [][]counted{
		{at(1, 1), at(1, 1), at(1, 1)},
		{at(2, 1), at(1, 1), at(1, 1)}, // changed between two readings
		{at(2, 1), at(1, 1), at(2, 1)}, // late
		{at(3, 1), at(2, 1), at(2, 1)}, // late, and on its way
		{at(3, 1), at(3, 1), nil},      // down
		{at(3, 1), at(3, 1), at(3, 1)},
		{at(3, 1), {"/x": 3}, at(3, 1)}, // deleted since
		{at(3, 1), {"/x": 3}, at(3, 1)},
	} {
		c.round(servers)
	}
	require.Empty(t, out.String())
	for range 4 {
		c.round([]counted{at(3, 2), at(4, 5), at(3, 5)})
	}
	records, err := history.Read(&out)
	require.NoError(t, err)
	var reasons []string
	for _, r := range records {
		require.Equal(t, history.LostWrites, r.Kind)
		reasons = append(reasons, r.Reason)
	}
	require.ElementsMatch(t, []string{
		"server 0 shows /x as of 0x3, server 1 showed it as of 0x4 before", "server 2 shows /x as of 0x3, server 1 showed it as of 0x4 before",
		"server 0 shows /y as of 0x2, server 1 showed it as of 0x5 before",
	}, reasons, "each is told once")
}

// A process that was paused closes its session before anything here has seen that it is lost.
func TestASessionThatIsLostIsToldWhoeverSeesItFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := memory.NewServer(memory.Config{SessionTimeout: time.Second}).Registry("lost")
		defer reg.Close()
		var out bytes.Buffer
		w := watch(reg, history.NewWriter(&out, "w", func() (time.Duration, time.Time) { return common(), time.Now() }))
		inner, err := reg.Open(t.Context())
		require.NoError(t, err)
		s := &watchedSession{Session: inner, in: w, closing: make(chan struct{})}
		defer reg.Refuse()()
		<-inner.Done()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.Error(t, s.Close(ctx))
		s.follow()
		records, err := history.Read(&out)
		require.NoError(t, err)
		var kinds []history.Kind
		for _, r := range records {
			kinds = append(kinds, r.Kind)
		}
		require.Equal(t, []history.Kind{history.Lost, history.Closing}, kinds)
	})
}
