package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/internal/pending"
	"github.com/elasticron/elasticron/registry/zookeeper/internal/link"
)

// A viewer consumes a watcher and holds it against the rules of every watch.
type viewer struct {
	t *testing.T
	w registry.Watcher

	mu     sync.Mutex
	adds   map[pending.Key]int
	synced map[pending.Key]int
	last   map[pending.Key]map[string]registry.Node
	newest map[pending.Key]map[string]registry.Node
	denied int
}

func view(t *testing.T, s *session) *viewer {
	w, err := s.Watch(context.Background())
	require.NoError(t, err)
	return &viewer{
		t: t, w: w, adds: map[pending.Key]int{}, synced: map[pending.Key]int{},
		last: map[pending.Key]map[string]registry.Node{}, newest: map[pending.Key]map[string]registry.Node{},
	}
}

// run consumes until the watcher is closed.
func (v *viewer) run(pause func() time.Duration) {
	for {
		events, err := v.w.Next(context.Background())
		if errors.Is(err, registry.ErrDenied) {
			v.mu.Lock()
			v.denied++
			v.mu.Unlock()
			continue
		}
		if err != nil {
			return
		}
		v.mu.Lock()
		for _, e := range events {
			v.take(e)
		}
		v.mu.Unlock()
		elapse(pause())
	}
}

func (v *viewer) take(e registry.Event) {
	key := pending.Key{Path: e.Path, Scope: e.Scope}
	if e.Synced {
		if v.synced[key]++; v.synced[key] > v.adds[key] {
			v.t.Errorf("%v synced too often", key)
		}
		return
	}
	if v.last[key] == nil {
		v.last[key], v.newest[key] = map[string]registry.Node{}, map[string]registry.Node{}
	}
	n, last, newest := e.Node, v.last[key][e.Node.Path], v.newest[key][e.Node.Path]
	if n.Exists() {
		if n.Modified < newest.Modified || (!last.Exists() && n.Created <= newest.Created) {
			v.t.Errorf("%v delivered %+v after %+v and %+v", key, n, newest, last)
		}
		v.newest[key][n.Path] = n
	}
	v.last[key][n.Path] = n
}

func (v *viewer) add(path string, scope registry.Scope) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.adds[pending.Key{Path: path, Scope: scope}]++
	require.NoError(v.t, v.w.Add(path, scope))
}

func (v *viewer) remove(path string, scope registry.Scope) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.w.Remove(path, scope)
	key := pending.Key{Path: path, Scope: scope}
	v.synced[key] = v.adds[key] // what was queued is dropped
	delete(v.last, key)
	delete(v.newest, key)
}

// state is what the viewer believes of a target.
func (v *viewer) state(key pending.Key) map[string]string {
	v.mu.Lock()
	defer v.mu.Unlock()
	state := map[string]string{}
	for path, n := range v.last[key] {
		if n.Exists() {
			state[path] = fmt.Sprint(string(n.Value), n.Modified)
		}
	}
	return state
}

// want is what the service has of a target.
func (f *fakeLink) want(key pending.Key) map[string]string {
	f.mu.Lock()
	defer f.mu.Unlock()
	state := map[string]string{}
	for path, n := range f.nodes {
		name, below := strings.CutPrefix(path, strings.TrimSuffix(key.Path, "/")+"/")
		if key.Scope == registry.Self && path == key.Path || key.Scope == registry.Children && below && name != "" && !strings.Contains(name, "/") {
			state[path] = fmt.Sprint(string(n.value), n.stat.Mzxid)
		}
	}
	return state
}

func bubble(t *testing.T, test func(t *testing.T, f *fakeLink, s *session)) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		s := live(f, Config{Namespace: "test"})
		defer func() { require.NoError(t, s.Close(context.Background())) }()
		test(t, f, s)
	})
}

// elapse lets time pass in the bubble.
func elapse(d time.Duration) { <-time.After(d) }

var somePaths = []string{"/a", "/b", "/a/x", "/a/y", "/b/x", "/a/x/z"}

// Whatever happens in whatever order, no path goes back on the way, and at the end
// every watcher holds what the service does, and nothing is left when it is closed.
func TestWatchersConverge(t *testing.T) {
	for seed := range uint64(300) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			bubble(t, func(t *testing.T, f *fakeLink, s *session) { converge(t, f, s, seed) })
		})
	}
}

// someKeys are one to four targets, so that each combination is alone at times.
func someKeys(random *rand.Rand) []pending.Key {
	keys := []pending.Key{{Path: "/", Scope: registry.Children}}
	for _, path := range somePaths {
		keys = append(keys, pending.Key{Path: path, Scope: registry.Self}, pending.Key{Path: path, Scope: registry.Children})
	}
	random.Shuffle(len(keys), func(i, k int) { keys[i], keys[k] = keys[k], keys[i] })
	return keys[:1+random.IntN(4)]
}

func converge(t *testing.T, f *fakeLink, s *session, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 1))
	late := upTo(rand.New(rand.NewPCG(seed, 2)), time.Duration(1+random.IntN(4))*time.Millisecond)
	f.late = func(string, bool) time.Duration { return late() }
	if seed%3 == 0 {
		flaky := rand.New(rand.NewPCG(seed, 3))
		f.fails = func(string) error {
			if flaky.IntN(10) == 0 {
				return errors.New("unknown error: -127")
			}
			return nil
		}
	}
	viewers := []*viewer{view(t, s), view(t, s)}
	watched := []map[pending.Key]bool{{}, {}}
	var work sync.WaitGroup
	for _, v := range viewers {
		slow := upTo(rand.New(rand.NewPCG(seed, 4)), 5*time.Millisecond)
		work.Go(func() { v.run(slow) })
	}
	keys := someKeys(random)
	for range 200 {
		path, key, k := somePaths[random.IntN(len(somePaths))], keys[random.IntN(len(keys))], random.IntN(2)
		switch random.IntN(8) {
		case 0, 1:
			if !watched[k][key] {
				viewers[k].add(key.Path, key.Scope)
				watched[k][key] = true
			}
		case 2:
			if watched[k][key] && random.IntN(2) == 0 {
				viewers[k].remove(key.Path, key.Scope)
				delete(watched[k], key)
			}
		case 3:
			f.remove(path)
		case 4: // there, gone and there again, while answers are on their way
			f.put(path, "once")
			elapse(time.Duration(random.Int64N(int64(3 * time.Millisecond))))
			f.remove(path)
			elapse(time.Duration(random.Int64N(int64(3 * time.Millisecond))))
			f.put(path, "again")
		default:
			f.put(path, fmt.Sprint(random.IntN(100)))
		}
		if random.IntN(3) == 0 {
			elapse(time.Duration(random.Int64N(int64(3 * time.Millisecond))))
		}
	}
	if seed%2 == 0 { // in the middle of everything
		require.NoError(t, viewers[1].w.Close())
		clear(watched[1])
	}
	elapse(time.Minute)
	synctest.Wait()
	require.Empty(t, f.overlap, "two reads at once")
	for path, p := range s.tracker.places {
		if len(p.kids) > 0 {
			require.Len(t, p.names, len(f.want(pending.Key{Path: path, Scope: registry.Children})), "what is kept for %s", path)
		} else {
			require.Empty(t, p.names)
		}
	}
	for k, v := range viewers {
		for key := range watched[k] {
			require.Equal(t, f.want(key), v.state(key), "watcher %d, %v", k, key)
			require.Equal(t, v.adds[key], v.synced[key], "watcher %d, %v", k, key)
		}
		require.NoError(t, v.w.Close())
	}
	work.Wait()
	elapse(time.Second)
	synctest.Wait()
	require.Empty(t, s.tracker.places, "what is left when nobody watches")
	require.Zero(t, s.tracker.readers)
}

// A second target of what is watched already gets the state of a read that began
// after its Add, and the first one does not hear it again.
func TestAddReadsAgain(t *testing.T) {
	bubble(t, func(t *testing.T, f *fakeLink, s *session) {
		f.put("/a", "1")
		first, second := view(t, s), view(t, s)
		first.add("/a", registry.Self)
		synctest.Wait()
		events, err := first.w.Next(t.Context())
		require.NoError(t, err)
		require.Len(t, events, 2)
		require.Equal(t, 1, f.reads)
		second.add("/a", registry.Self)
		synctest.Wait()
		require.Equal(t, 2, f.reads)
		events, err = second.w.Next(t.Context())
		require.NoError(t, err)
		require.Len(t, events, 2)
		require.Equal(t, "1", string(events[0].Node.Value))
		events[0].Node.Value[0] = 'x'
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = first.w.Next(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
	})
}

// A read that was under way when a target was added does not count for it: the
// session may have written since.
func TestAddDoesNotTakeWhatWasOnItsWay(t *testing.T) {
	bubble(t, func(t *testing.T, f *fakeLink, s *session) {
		f.put("/a", "old")
		f.late = func(string, bool) time.Duration { return 10 * time.Millisecond }
		notify := f.notify
		f.notify = func(link.Notification) {} // an event that is late
		first, second := view(t, s), view(t, s)
		first.add("/a", registry.Self)
		elapse(15 * time.Millisecond) // the service has answered, the answer is not here
		f.put("/a", "new")
		second.add("/a", registry.Self)
		for i, want := range []string{"old", "new"} {
			events, err := []*viewer{first, second}[i].w.Next(t.Context())
			require.NoError(t, err)
			require.Equal(t, want, string(events[0].Node.Value))
		}
		f.notify = notify
	})
}

// A child that went and came between two lists, so that none lacks it, and whose
// answer from between arrives last: nothing but the list can say to ask again.
func TestListAsksAgainForWhatIsBeingRead(t *testing.T) {
	bubble(t, func(t *testing.T, f *fakeLink, s *session) {
		f.put("/a", "")
		f.put("/a/x", "first")
		v := view(t, s)
		v.add("/a", registry.Children)
		synctest.Wait()
		f.late = func(what string, served bool) time.Duration {
			switch {
			case what == "list /a" && !served:
				return 4 * time.Millisecond // served at 5
			case what == "data /a/x" && !served:
				return 2 * time.Millisecond // served at 2
			case what == "data /a/x":
				return 20 * time.Millisecond
			}
			return 0
		}
		f.put("/a/x", "second")
		elapse(time.Millisecond)
		f.remove("/a/x")
		elapse(2 * time.Millisecond)
		f.put("/a/x", "third")
		elapse(time.Second)
		events, err := v.w.Next(t.Context())
		require.NoError(t, err)
		for _, e := range events {
			v.take(e)
		}
		require.Equal(t, f.want(pending.Key{Path: "/a", Scope: registry.Children}), v.state(pending.Key{Path: "/a", Scope: registry.Children}))
	})
}

func TestDeniedTargets(t *testing.T) {
	bubble(t, func(t *testing.T, f *fakeLink, s *session) {
		f.put("/a", "")
		f.put("/a/x", "")
		f.put("/b", "")
		f.fails = func(path string) error {
			if path == "/a/x" {
				return zk.ErrNoAuth
			}
			return nil
		}
		v := view(t, s)
		v.add("/a/x", registry.Self)
		_, err := v.w.Next(t.Context())
		require.ErrorIs(t, err, registry.ErrDenied)
		require.ErrorIs(t, err, zk.ErrNoAuth)
		require.ErrorContains(t, err, "watch /a/x (self): ")
		v.add("/a", registry.Children)
		_, err = v.w.Next(t.Context())
		require.ErrorIs(t, err, registry.ErrDenied)
		require.ErrorContains(t, err, "watch /a (children): zookeeper: watch /a/x: ")
		v.add("/b", registry.Self)
		events, err := v.w.Next(t.Context())
		require.NoError(t, err)
		require.Equal(t, "/b", events[0].Path)
		require.NoError(t, v.w.Close())
		synctest.Wait()
		require.Empty(t, s.tracker.places)
	})
}

// The end of a child is what its watch reports: it is not asked for again.
func TestEndOfAChildCostsNoRead(t *testing.T) {
	bubble(t, func(t *testing.T, f *fakeLink, s *session) {
		f.put("/a", "")
		for i := range 100 {
			f.put(fmt.Sprint("/a/", i), "")
		}
		v := view(t, s)
		v.add("/a", registry.Children)
		synctest.Wait()
		require.Equal(t, 101, f.reads)
		events, err := v.w.Next(t.Context())
		require.NoError(t, err)
		require.Len(t, events, 101)
		for i := range 100 {
			f.remove(fmt.Sprint("/a/", i))
		}
		synctest.Wait()
		require.LessOrEqual(t, f.reads, 201, "lists only")
		events, err = v.w.Next(t.Context())
		require.NoError(t, err)
		require.Len(t, events, 100)
		require.Len(t, s.tracker.places, 1)
		require.Empty(t, s.tracker.places["/a"].names)
	})
}

func TestWatchersGiveWatchesBack(t *testing.T) {
	bubble(t, func(t *testing.T, f *fakeLink, s *session) {
		f.put("/a", "")
		f.put("/a/x", "")
		v := view(t, s)
		v.add("/a", registry.Children)
		v.add("/a", registry.Self)
		v.add("/a/x", registry.Self)
		synctest.Wait()
		v.remove("/a", registry.Children)
		synctest.Wait()
		require.Equal(t, []string{"list /a"}, f.disarmed, "the nodes are watched by themselves too")
		require.NoError(t, v.w.Close())
		synctest.Wait()
		require.ElementsMatch(t, []string{"list /a", "data /a", "data /a/x"}, f.disarmed)
		require.Empty(t, s.tracker.places)
	})
}

func TestWatcherEndsWithTheSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.late = func(string, bool) time.Duration { return time.Hour }
		s := live(f, Config{Namespace: "test"})
		v := view(t, s)
		v.add("/a", registry.Self)
		synctest.Wait()
		require.NoError(t, s.Close(t.Context()), "which does not wait for the read")
		_, err := v.w.Next(t.Context())
		require.ErrorIs(t, err, registry.ErrSessionLost)
		require.ErrorIs(t, v.w.Add("/b", registry.Self), registry.ErrSessionLost)
		require.NoError(t, v.w.Close())
		require.ErrorIs(t, v.w.Add("/b", registry.Self), registry.ErrClosed)
		ran := false
		s.spawn(func(ctx context.Context) { ran = ctx.Err() != nil })
		require.True(t, ran, "what is spawned after the end runs at once, with a context that has ended")
	})
}
