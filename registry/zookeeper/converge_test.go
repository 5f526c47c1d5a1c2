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

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/internal/pending"
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
	for path, p := range s.tracker.nodes {
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
	require.Empty(t, s.tracker.nodes, "what is left when nobody watches")
	require.Zero(t, s.tracker.readers)
}
