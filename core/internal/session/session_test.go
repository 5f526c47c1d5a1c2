package session

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/memory"
)

// A strict registry lets its sessions watch what is not denied.
type strict struct {
	registry.Registry
	mu       sync.Mutex
	denied   map[string]bool
	watchers []*watcher
	watchErr error
}

func (s *strict) Open(ctx context.Context) (registry.Session, error) {
	ses, err := s.Registry.Open(ctx)
	return &session{ses, s}, err
}

// deny denies paths from now on, also where they are watched, and allows all others.
func (s *strict) deny(paths ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.denied = map[string]bool{}
	for _, p := range paths {
		s.denied[p] = true
		for _, w := range s.watchers {
			if w.added[p] {
				w.Remove(p, registry.Self)
				w.Remove(p, registry.Children)
				w.refuse(p)
			}
		}
	}
}

type session struct {
	registry.Session
	strict *strict
}

func (s *session) Watch(ctx context.Context) (registry.Watcher, error) {
	if err := s.strict.watchErr; err != nil {
		return nil, err
	}
	inner, err := s.Session.Watch(ctx)
	w := &watcher{Watcher: inner, strict: s.strict, added: map[string]bool{}}
	s.strict.mu.Lock()
	defer s.strict.mu.Unlock()
	s.strict.watchers = append(s.strict.watchers, w)
	return w, err
}

type watcher struct {
	registry.Watcher
	strict  *strict
	added   map[string]bool
	refused int
	adds    int
	wake    context.CancelFunc
	fail    error
}

// refuse is called with the lock of strict.
func (w *watcher) refuse(path string) {
	delete(w.added, path)
	w.refused++
	if w.wake != nil {
		w.wake()
	}
}

func (w *watcher) Add(path string, scope registry.Scope) error {
	w.strict.mu.Lock()
	defer w.strict.mu.Unlock()
	w.adds++
	if w.strict.denied[path] {
		w.refuse(path)
		return nil
	}
	w.added[path] = true
	return w.Watcher.Add(path, scope)
}

func (w *watcher) Next(ctx context.Context) ([]registry.Event, error) {
	for {
		once, cancel := context.WithCancel(ctx)
		w.strict.mu.Lock()
		w.wake = cancel
		refused, fail := w.refused > 0, w.fail
		if refused {
			w.refused--
		}
		w.fail = nil
		w.strict.mu.Unlock()
		switch {
		case fail != nil:
			cancel()
			return nil, fail
		case refused:
			cancel()
			return nil, registry.ErrDenied
		}
		events, err := w.Watcher.Next(once)
		again := once.Err() != nil && ctx.Err() == nil
		cancel()
		if !again || err == nil {
			return events, err
		}
	}
}

// A bed is a session on a strict registry, and another session.
type bed struct {
	*testing.T
	reg   *strict
	srv   *memory.Server
	ses   *Part
	other registry.Session
	mu    sync.Mutex
	seen  map[string][]string // by path, the values
	warns []string
}

func onBed(t *testing.T, test func(b *bed)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := &bed{T: t, srv: memory.NewServer(memory.Config{}), seen: map[string][]string{}}
		b.reg = &strict{Registry: b.srv.Registry("shop")}
		var err error
		b.other, err = b.srv.Registry("shop").Open(t.Context())
		require.NoError(t, err)
		b.do(registry.Create("/a", []byte("a1")), registry.Create("/b", []byte("b1")))
		ses, err := Open(t.Context(), b.reg, func(problem string, err error) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.warns = append(b.warns, problem+": "+err.Error())
		})
		require.NoError(t, err)
		b.ses = ses.Part()
		test(b)
		_ = b.ses.End(errors.New("the test is over"))
		require.NoError(t, b.other.Close(context.Background()))
		require.NoError(t, b.reg.Close())
	})
}

func (b *bed) do(ops ...registry.Op) {
	b.Helper()
	_, err := b.other.Commit(context.Background(), ops...)
	require.NoError(b, err)
}

func (b *bed) set(path, value string) {
	b.Helper()
	b.do(registry.Set(path, []byte(value), registry.AnyVersion))
	synctest.Wait()
}

func (b *bed) follow(paths ...string) {
	for _, p := range paths {
		b.ses.Follow(p, registry.Self, func(e registry.Event) {
			b.mu.Lock()
			defer b.mu.Unlock()
			if !e.Synced {
				b.seen[p] = append(b.seen[p], string(e.Node.Value))
			}
		})
	}
	synctest.Wait()
}

func (b *bed) values(path string) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.seen[path]
}

func (b *bed) warnings() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	warns := b.warns
	b.warns = nil
	return warns
}

func (b *bed) adds() int {
	b.reg.mu.Lock()
	defer b.reg.mu.Unlock()
	return b.reg.watchers[0].adds
}

func (b *bed) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func TestFollow(t *testing.T) {
	onBed(t, func(b *bed) {
		b.follow("/a", "/b")
		b.set("/a", "a2")
		require.Equal(t, []string{"a1", "a2"}, b.values("/a"))
		require.Equal(t, []string{"b1"}, b.values("/b"))
		b.ses.Unfollow("/a", registry.Self)
		b.set("/a", "a3")
		b.set("/b", "b2")
		require.Equal(t, []string{"a1", "a2"}, b.values("/a"))
		require.Equal(t, []string{"b1", "b2"}, b.values("/b"))
		b.follow("/a")
		require.Equal(t, "a3", b.values("/a")[2])
		require.Empty(t, b.warnings())
		b.follow("nonsense")
		require.Len(t, b.warnings(), 1)
	})
}

// Finding 8: the others go on, and the denied one is asked for again, until it is shown.
func TestADeniedTargetDeafensNobody(t *testing.T) {
	onBed(t, func(b *bed) {
		b.reg.deny("/a")
		b.follow("/a", "/b")
		require.Len(t, b.warnings(), 1)
		b.set("/b", "b2")
		require.Equal(t, []string{"b1", "b2"}, b.values("/b"))
		b.pass(10 * time.Second)
		require.InDelta(t, 2+2*10, b.adds(), 2, "it is asked for once a second")
		require.Empty(t, b.values("/a"))
		require.Empty(t, b.warnings(), "once a minute")
		b.pass(time.Minute)
		require.Len(t, b.warnings(), 1)
		b.reg.deny()
		b.pass(deniedPause)
		b.set("/a", "a2")
		require.Equal(t, []string{"a1", "a2"}, b.values("/a"))
		before := b.adds()
		b.pass(time.Minute)
		require.Equal(t, before, b.adds())
		require.Equal(t, []string{"b1", "b2"}, b.values("/b"), "it was left as it was")
	})
}

// A right that is taken away while the target is watched, and given back.
func TestATargetThatWasShownIsAskedForAgainToo(t *testing.T) {
	onBed(t, func(b *bed) {
		b.follow("/a", "/b")
		b.reg.deny("/a")
		b.set("/a", "a2")
		b.pass(10 * time.Second)
		require.Equal(t, []string{"a1"}, b.values("/a"))
		b.reg.deny()
		b.pass(deniedPause)
		require.Equal(t, []string{"a1", "a2"}, b.values("/a"))
	})
}

// Children that go while their directory is denied are told as gone once it is shown again,
// whatever is denied meanwhile; what came is told, and what stayed is not told as gone.
func TestChildrenThatWentWhileTheyWereDenied(t *testing.T) {
	for name, meanwhile := range map[string]func(b *bed){
		"alone": func(*bed) {},
		"while another is denied": func(b *bed) {
			b.reg.deny("/b")
			b.follow("/b")
			b.pass(10 * time.Second)
		},
		"shown and denied once more": func(b *bed) {
			b.reg.deny()
			b.pass(deniedPause)
			b.reg.deny("/dir")
			b.do(registry.Delete("/dir/2", registry.AnyVersion))
			b.pass(2 * deniedPause)
		},
		"denied while they are listed": func(b *bed) {
			b.reg.deny()
			time.Sleep(deniedPause)
			b.reg.deny("/dir")
			b.do(registry.Delete("/dir/2", registry.AnyVersion))
			b.pass(2 * deniedPause)
		},
	} {
		t.Run(name, func(t *testing.T) {
			onBed(t, func(b *bed) {
				b.do(registry.Create("/dir", nil))
				for _, n := range []string{"1", "2", "3"} {
					b.do(registry.Create("/dir/"+n, nil))
				}
				stands := map[string]bool{}
				b.ses.Follow("/dir", registry.Children, func(e registry.Event) {
					b.mu.Lock()
					defer b.mu.Unlock()
					if e.Synced {
						return
					}
					if stands[e.Node.Path] = e.Node.Exists(); !e.Node.Exists() {
						delete(stands, e.Node.Path)
					}
				})
				b.do(registry.Create("/dir/4", nil))
				synctest.Wait()
				require.Len(t, stands, 4)
				b.reg.deny("/dir")
				b.do(registry.Delete("/dir/1", registry.AnyVersion))
				b.do(registry.Delete("/dir/4", registry.AnyVersion))
				b.do(registry.Create("/dir/5", nil))
				b.pass(2 * deniedPause)
				meanwhile(b)
				b.reg.deny()
				b.pass(2 * deniedPause)
				var want []string
				ids, err := b.other.Children(t.Context(), "/dir")
				require.NoError(t, err)
				for _, id := range ids {
					want = append(want, "/dir/"+id)
				}
				require.ElementsMatch(t, want, slices.Collect(maps.Keys(stands)))
				before := b.adds()
				b.do(registry.Create("/dir/6", nil))
				b.pass(time.Minute)
				require.True(t, stands["/dir/6"])
				require.Equal(t, before, b.adds())
			})
		})
	}
}

// What is not wanted any more is not asked for.
func TestADeniedTargetMayBeUnfollowed(t *testing.T) {
	onBed(t, func(b *bed) {
		b.reg.deny("/a")
		b.follow("/a")
		b.ses.Unfollow("/a", registry.Self)
		b.pass(2 * time.Second)
		require.Equal(t, 1, b.adds())
	})
}

func TestAWatcherThatFailsGoesOn(t *testing.T) {
	onBed(t, func(b *bed) {
		b.follow("/a")
		w := b.reg.watchers[0]
		b.reg.mu.Lock()
		w.fail = errors.New("cut off")
		w.wake()
		b.reg.mu.Unlock()
		synctest.Wait()
		require.Equal(t, []string{"watching failed; going on: cut off"}, b.warnings())
		b.pass(deniedPause)
		b.set("/a", "a2")
		require.Equal(t, []string{"a1", "a2"}, b.values("/a"))
	})
}

// End joins everything: what is denied, what waits, what the pools do.
func TestEndJoinsEverything(t *testing.T) {
	for name, prepare := range map[string]func(b *bed){
		"quiet":  func(*bed) {},
		"denied": func(b *bed) { b.reg.deny("/a"); b.follow("/a", "/b") },
		"lost":   func(b *bed) { b.srv.Expire(b.ses.ID()); <-b.ses.Done() },
		"paused": func(b *bed) { time.AfterFunc(time.Minute, b.srv.Pause()) },
		"busy": func(b *bed) {
			for range 100 {
				b.ses.Control.Task(func() { <-b.ses.Context.Done() }).Poke()
				b.ses.Records.Task(func() { settleDown(b.ses.Context) }).Poke()
			}
			synctest.Wait()
		},
	} {
		t.Run(name, func(t *testing.T) {
			onBed(t, func(b *bed) {
				prepare(b)
				why := errors.New("why")
				err := b.ses.End(why)
				require.Equal(t, name == "paused", err != nil, "%v", err)
				require.Equal(t, why, context.Cause(b.ses.Context))
				require.ErrorIs(t, b.ses.Err(), registry.ErrSessionLost)
				b.pass(time.Minute)
				b.follow("/a") // after the end nobody needs it
				require.Empty(t, b.values("/a"))
				require.LessOrEqual(t, len(b.warnings()), 1)
				done := b.ses.Control.Task(func() { t.Error("after the end") })
				done.Poke()
			}) // the bubble ends with its last goroutine
		})
	}
}

// settleDown is work that notices the end a little late.
func settleDown(ctx context.Context) {
	<-ctx.Done()
	time.Sleep(time.Second)
}

func TestCancel(t *testing.T) {
	onBed(t, func(b *bed) {
		why := errors.New("why")
		b.ses.Cancel(why)
		require.Equal(t, why, context.Cause(b.ses.Context))
		require.NoError(t, b.ses.Err(), "the session itself stands")
	})
}

func TestOpenFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := memory.NewServer(memory.Config{})
		reg := &strict{Registry: srv.Registry("shop"), watchErr: registry.ErrUnavailable}
		_, err := Open(t.Context(), reg, nil)
		require.ErrorIs(t, err, registry.ErrUnavailable)
		require.NoError(t, reg.Close())
		_, err = Open(t.Context(), &closed{reg}, nil)
		require.ErrorIs(t, err, registry.ErrClosed)
	})
}

type closed struct{ registry.Registry }

func (c *closed) Open(context.Context) (registry.Session, error) { return nil, registry.ErrClosed }
