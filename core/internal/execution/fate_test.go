package execution

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/internal/layout/ledger"
	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/memory"
)

// A cost is what one fate adds to a commit that it hits.
type cost struct {
	fate          memory.Fate
	commits, gets int
}

// Where the answer was lost the marker is read, and the ledger once more by the recorder.
var costs = map[string]cost{
	"answer lost":  {memory.AnswerLost, 2, 2},
	"request lost": {memory.RequestLost, 2, 1},
	"applied late": {memory.AppliedLate(3 * time.Second), 2, 1},
	"refused":      {memory.Refused, 1, 0},
}

func TestAnUncertainCommitIsSettled(t *testing.T) {
	for name, c := range costs {
		for _, k := range []kind{begin, end, account, giveBack} {
			t.Run(fmt.Sprint(name, "/", k), func(t *testing.T) {
				onBed(t, 5, func(b *bed) {
					if k == end || k == giveBack {
						b.submit(begin, due(1), numbers(5)...)
						synctest.Wait()
					}
					b.client.ResetRequests()
					b.take()
					b.fates(c.fate)
					steps := b.submit(k, due(1), numbers(5)...)
					b.pass(time.Second)
					is := b.take()
					require.Equal(t, steps, is.steps())
					require.Len(t, is.applied, 1)
					require.Empty(t, is.no)
					require.Equal(t, b.node(ledgerPath).Modified, is.applied[0].rev)
					b.requireRequests(c.commits, c.gets)
					version := b.node(ledgerPath).Version
					b.pass(10 * time.Second) // the late one comes to nothing
					require.Equal(t, version, b.node(ledgerPath).Version)
					switch k {
					case begin:
						for n := range 5 {
							require.Equal(t, due(1), b.item(n).Run)
							require.Equal(t, "a", string(b.node(runningPath(n)).Value), "it has lasted")
						}
					case giveBack:
						b.requireAtRest(due(1).Add(-1))
					default:
						b.requireAtRest(due(1))
					}
				})
			})
		}
	}
}

// Any three fates in a row, on the begin or on the end.
func TestThreeFatesInARow(t *testing.T) {
	fates := []memory.Fate{
		memory.Deliver, memory.AnswerLost, memory.RequestLost, memory.AppliedLate(3 * time.Second),
		memory.AppliedLate(100 * time.Millisecond), memory.Refused,
	}
	for k := range len(fates) * len(fates) * len(fates) {
		x, y, z := fates[k%6], fates[k/6%6], fates[k/36]
		onBed(t, 3, func(b *bed) {
			what := fmt.Sprint([]memory.Fate{x, y, z})
			b.fates(x, y, z)
			for k := 1; k <= 2; k++ {
				for _, kind := range []kind{begin, end} {
					steps := b.submit(kind, due(10*k), numbers(3)...)
					b.pass(5 * time.Second)
					is := b.take()
					require.Equal(t, steps, is.steps(), what)
					require.Empty(t, is.no, what)
				}
				b.requireAtRest(due(10 * k))
			}
		})
	}
}

// The leader writes the ledger while it is not known whether a begin was applied.
func TestALedgerThatMovedOnSettlesAnUncertainBegin(t *testing.T) {
	for name, c := range costs {
		t.Run(name, func(t *testing.T) {
			onBed(t, 2, func(b *bed) {
				b.fates(c.fate)
				b.submit(begin, due(1), 0, 1)
				synctest.Wait()
				applied := c.fate == memory.AnswerLost
				b.rule(func(l *ledger.Ledger) {
					if rec, _ := l.Get(0); rec.Running() { // the leader takes nothing that runs
						rec.Leaving = true
						l.Set(0, rec)
						return
					}
					l.Delete(0)
				})
				b.pass(10 * time.Second)
				is := b.take()
				if applied {
					require.Len(t, is.steps(), 2)
					require.Len(t, is.applied, 1)
					rec, _ := is.seen[0].Get(0)
					require.True(t, rec.Leaving)
					return
				}
				require.Equal(t, 1, is.steps()[0].item)
				require.Equal(t, NotOwned, is.no[0].why)
				require.False(t, b.node(runningPath(0)).Exists())
			})
		})
	}
}

// The answer of a begin is lost, the leader writes the ledger and says so in a notice, and somebody destroys the ledger
// before the begin is tried again. What the notice shows does not tell what it is the fence of: it was taken over, the
// begin refused, and the item stood as running with nobody running it.
func TestANoticeDoesNotSettleAnUncertainBegin(t *testing.T) {
	onBed(t, 2, func(b *bed) {
		b.fates(memory.AnswerLost)
		b.submit(begin, due(1), 0, 1)
		synctest.Wait()
		b.rule(func(l *ledger.Ledger) {
			rec, _ := l.Get(0)
			require.True(t, rec.Running())
			rec.Leaving = true
			l.Set(0, rec)
		})
		node := b.node(ledgerPath)
		b.rec.Take(false, Written{Version: node.Version, Value: node.Value})
		b.do(registry.Set(ledgerPath, []byte("nothing of ours"), node.Version))
		b.pass(10 * time.Second)
		is := b.take()
		require.ErrorIs(t, is.gone[0], errForeign)
		require.Empty(t, is.steps(), "neither recorded nor refused: the next registration finds out")
		require.Zero(t, b.rec.Ledger().Running())
	})
}

// A node in the way refuses its item alone, and only when what is in flight is ruled out:
// else the item would be recorded as running with nobody running it.
func TestAnObstructedCreate(t *testing.T) {
	for name, fates := range map[string][]memory.Fate{
		"certain":         nil,
		"answer lost":     {memory.AppliedLate(3 * time.Second), memory.Deliver, memory.AnswerLost},
		"request lost":    {memory.AppliedLate(3 * time.Second), memory.Deliver, memory.RequestLost},
		"applied late":    {memory.AppliedLate(3 * time.Second), memory.Deliver, memory.AppliedLate(time.Second)},
		"after it":        {memory.AppliedLate(60 * time.Millisecond), memory.Deliver, memory.RequestLost, memory.RequestLost},
		"refused":         {memory.AppliedLate(3 * time.Second), memory.Deliver, memory.Refused},
		"twice uncertain": {memory.AppliedLate(3 * time.Second), memory.RequestLost, memory.AnswerLost},
	} {
		t.Run(name, func(t *testing.T) {
			onBed(t, 2, func(b *bed) {
				b.rec.Show(0, true)
				b.do(registry.CreateEphemeral(runningPath(0), []byte("java")))
				b.fates(fates...)
				b.submit(begin, due(1), 0, 1)
				b.pass(55 * time.Millisecond) // the second attempt has seen the node
				b.do(registry.Delete(runningPath(0), registry.AnyVersion))
				b.pass(20 * time.Second)
				is := b.take()
				require.Len(t, is.steps(), 2-len(is.no), "each is begun or refused")
				begun := map[int]bool{}
				for _, s := range is.steps() {
					begun[s.item] = true
				}
				require.True(t, begun[1])
				for n := range 2 {
					require.Equal(t, begun[n], b.item(n).Running(), "item %d", n)
					require.Equal(t, begun[n], b.node(runningPath(n)).Exists(), "item %d", n)
				}
				if name == "certain" {
					require.Equal(t, Obstructed, is.no[0].why)
					require.Equal(t, due(0), is.no[0].rec.Through)
				}
			})
		})
	}
}

// A delete that finds nothing, since somebody has deleted the node, does not hinder the end.
func TestAnErasedDelete(t *testing.T) {
	onBed(t, 3, func(b *bed) {
		b.submit(begin, due(1), numbers(3)...)
		b.pass(showAfter)
		b.do(registry.Delete(runningPath(0), registry.AnyVersion), registry.Delete(runningPath(2), registry.AnyVersion))
		b.take()
		b.submit(end, due(1), numbers(3)...)
		b.pass(time.Second)
		require.Len(t, b.take().steps(), 3)
		b.requireAtRest(due(1))
	})
}

// The parent of a node that somebody has deleted is made again.
func TestADeletedParent(t *testing.T) {
	onBed(t, 2, func(b *bed) {
		b.rec.Show(0, true)
		b.do(registry.Delete("/items/0", registry.AnyVersion))
		b.submit(begin, due(1), 0, 1)
		b.pass(time.Second)
		require.Len(t, b.take().steps(), 2)
		require.True(t, b.node(runningPath(0)).Exists())
	})
	onBed(t, 2, func(b *bed) { // and is ephemeral: that will never do
		b.rec.Show(0, true)
		b.do(registry.Delete("/items/0", registry.AnyVersion), registry.CreateEphemeral("/items/0x", nil))
		b.do(registry.CreateEphemeral("/items/0", nil))
		b.submit(begin, due(1), 0, 1)
		b.pass(time.Second)
		is := b.take()
		require.Len(t, is.steps(), 1)
		require.Equal(t, Obstructed, is.no[0].why)
	})
}

// An item that somebody took out of the ledger while it ran ends all the same: its running
// node goes, if it is still ours.
func TestStrays(t *testing.T) {
	for name, c := range costs {
		t.Run(name, func(t *testing.T) {
			onBed(t, 3, func(b *bed) {
				b.submit(begin, due(1), numbers(3)...)
				b.pass(showAfter)
				b.rule(func(l *ledger.Ledger) { l.Delete(0); l.Delete(1) })
				b.do(registry.Delete(runningPath(1), registry.AnyVersion))
				b.do(registry.CreateEphemeral(runningPath(1), []byte("b")))
				b.rec.Refresh(false)
				synctest.Wait()
				b.take()
				b.fates(c.fate)
				b.submit(end, due(1), 0, 1)
				b.submit(account, due(2), 0)
				b.pass(10 * time.Second)
				is := b.take()
				require.Len(t, is.steps(), 2)
				require.Equal(t, NotOwned, is.no[0].why)
				require.Equal(t, account, is.no[0].kind)
				require.Equal(t, []int{2}, b.ledger().Numbers())
				require.False(t, b.node(runningPath(0)).Exists())
				require.Equal(t, "b", string(b.node(runningPath(1)).Value))
			})
		})
	}
}

func TestWhatEndsTheRegistration(t *testing.T) {
	for name, spoil := range map[string]func(b *bed){
		"life deleted":   func(b *bed) { b.do(registry.Delete(lifePath, registry.AnyVersion)) },
		"ledger deleted": func(b *bed) { b.do(registry.Delete(ledgerPath, registry.AnyVersion)) },
		"ledger made anew": func(b *bed) {
			node := b.node(ledgerPath)
			b.do(registry.Delete(ledgerPath, registry.AnyVersion))
			b.do(registry.Create(ledgerPath, node.Value))
			b.rec.Refresh(false) // by its version alone it cannot be told apart
		},
		"garbage": func(b *bed) { b.do(registry.Set(ledgerPath, []byte("{"), registry.AnyVersion)) },
	} {
		for what, c := range costs {
			t.Run(name+"/"+what, func(t *testing.T) {
				onBed(t, 2, func(b *bed) {
					value := b.node(ledgerPath).Value
					spoil(b)
					b.fates(c.fate)
					b.submit(begin, due(1), 0, 1)
					b.pass(10 * time.Second)
					is := b.take()
					require.Len(t, is.gone, 1, "told once")
					require.Empty(t, is.steps())
					require.Empty(t, is.no)
					b.submit(account, due(1), 1)
					b.rec.Refresh(false)
					b.pass(10 * time.Second)
					require.Equal(t, told{}, b.take())

					// What was asked for goes on under the next registration.
					b.rec.Suspend()
					b.srv.Intercept(nil)
					led, err := ledger.Decode(value)
					require.NoError(t, err)
					place := Place{ID: "b", Life: "/lives/b", Ledger: "/ledgers/b"}
					_, err = b.ses.Commit(b.Context(), registry.CreateEphemeral(place.Life, nil), registry.Create(place.Ledger, value))
					require.NoError(t, err)
					b.rec.Resume(place, b.node(place.Ledger), led)
					b.pass(time.Second)
					is = b.take()
					require.Len(t, is.steps(), 2)
					require.Len(t, is.no, 1, "the item runs")
				})
			})
		}
	}
	onBed(t, 2, func(b *bed) { // found out by the watch, with nothing to commit
		b.do(registry.Delete(ledgerPath, registry.AnyVersion))
		b.rec.Refresh(false)
		synctest.Wait()
		require.ErrorIs(t, b.take().gone[0], errForeign)
	})
}

// Servers that lose what they had acknowledged leave a ledger behind that says of ended items that
// they run.
func TestALedgerThatWentBackEndsTheRegistration(t *testing.T) {
	onBed(t, 2, func(b *bed) {
		b.submit(begin, due(1), 0)
		b.pass(time.Second)
		require.Len(t, b.take().steps(), 1)
		b.rec.mu.Lock()
		b.rec.version++ // one more commit was acknowledged than the node has seen
		b.rec.mu.Unlock()
		b.rec.Refresh(false)
		synctest.Wait()
		require.ErrorIs(t, b.take().gone[0], errBack)
	})
}

// The registration ends while the outcome of a commit is not known: Resume finds it in the
// ledger that the next one starts from.
func TestSuspendedInDoubt(t *testing.T) {
	for name, c := range map[string]struct {
		fate    memory.Fate
		applied bool
	}{
		"applied": {memory.AnswerLost, true}, "lost": {memory.RequestLost, false},
		"late": {memory.AppliedLate(time.Minute), false}, "not sent": {memory.Refused, false},
	} {
		for _, k := range []kind{begin, end} {
			t.Run(fmt.Sprint(name, "/", k), func(t *testing.T) {
				onBed(t, 3, func(b *bed) {
					if k == end {
						b.submit(begin, due(1), 0, 1)
						synctest.Wait()
						b.take()
					}
					fates := []memory.Fate{c.fate}
					for range 100 {
						fates = append(fates, memory.Refused)
					}
					b.fates(fates...)
					steps := b.submit(k, due(1), 0, 1)
					b.pass(300 * time.Millisecond)
					b.rec.Suspend()
					require.Empty(t, b.take().applied)
					also := b.submit(begin, due(2), 2)
					synctest.Wait()
					b.srv.Intercept(nil)
					b.client.ResetRequests()
					var ops []registry.Op
					for n := range 2 { // as the registration does
						if b.node(runningPath(n)).Exists() && !b.item(n).Running() {
							ops = append(ops, registry.Delete(runningPath(n), registry.AnyVersion))
						}
					}
					b.again(ops...)
					b.pass(2 * time.Minute)
					is := b.take()
					require.ElementsMatch(t, append(also, steps...), is.steps())
					require.Empty(t, is.no)
					for n := range 2 {
						require.Equal(t, k == begin, b.item(n).Running())
						require.Equal(t, k == begin, b.node(runningPath(n)).Exists())
					}
					require.Equal(t, c.applied, len(is.applied) == 2, "%+v", is.applied)
				})
			})
		}
	}
}

// A write of the leader to the new ledger that is noticed before Resume is not forgotten,
// also when nothing is committed that would find it out.
func TestARefreshBeforeResume(t *testing.T) {
	onBed(t, 2, func(b *bed) {
		b.rec.Suspend()
		led := b.ledger()
		node := b.node(ledgerPath)
		b.rule(func(l *ledger.Ledger) { l.Delete(1) })
		b.rec.Refresh(false)
		b.rec.Resume(b.place, node, led)
		synctest.Wait()
		is := b.take()
		require.Len(t, is.seen, 1)
		require.Equal(t, []int{0}, is.seen[0].Numbers())
		require.Equal(t, []int{0, 1}, led.Numbers(), "Resume keeps a copy")
	})
}

// wrapped is a session with limits of its own, whose commits may be denied or found invalid.
type wrapped struct {
	registry.Session
	limits registry.Limits
	index  int
	err    atomic.Pointer[error]
	tries  atomic.Int64
	seen   func(ops []registry.Op) // may be nil
}

func (w *wrapped) Limits() registry.Limits {
	if w.limits.MaxOps > 0 {
		return w.limits
	}
	return w.Session.Limits()
}

func (w *wrapped) Commit(ctx context.Context, ops ...registry.Op) (registry.Revision, error) {
	w.tries.Add(1)
	if w.seen != nil {
		w.seen(ops)
	}
	if err := w.err.Load(); err != nil {
		if errors.Is(*err, registry.ErrInvalid) {
			return 0, *err
		}
		return 0, &registry.CommitError{Index: w.index, Op: ops[w.index], Err: *err}
	}
	return w.Session.Commit(ctx, ops...)
}

func TestADeniedCommitIsTriedAgain(t *testing.T) {
	for index, what := range []string{"life", "ledger", "running node"} {
		t.Run(what, func(t *testing.T) {
			w := &wrapped{index: index}
			w.err.Store(&registry.ErrDenied)
			onBedOf(t, 5, func(s registry.Session) registry.Session { w.Session = s; return w }, func(b *bed) {
				b.rec.Show(0, true)
				steps := b.submit(begin, due(1), numbers(5)...)
				b.pass(10 * time.Second)
				is := b.take()
				require.Empty(t, is.steps())
				require.Empty(t, is.no)
				require.Empty(t, is.gone)
				require.NotEmpty(t, is.late)
				require.Less(t, w.tries.Load(), int64(20))
				w.err.Store(nil)
				b.pass(again)
				require.Equal(t, steps, b.take().steps())
			})
		})
	}
}

// Finding 20: what is too large is split, and ErrInvalid ends nothing.
func TestWhatIsTooLargeIsSplit(t *testing.T) {
	// Records that are so long that not even a page of them fits a value.
	told := func(n int) ledger.Told {
		return ledger.Told{}.With(ledger.Note{Due: due(1 + n), Instance: strings.Repeat("x", 600)})
	}
	l := ledger.New(1, 40)
	rest := ledger.New(1, 40)
	for n := range 40 {
		l.Set(n, ledger.Item{Through: due(1 + n), Run: due(1 + n), Told: told(n)})
		rest.Set(n, ledger.Item{Through: due(1 + n), Told: told(n)})
	}
	for name, limits := range map[string]registry.Limits{
		"bytes": {MaxOps: 40, MaxBytes: len(l.Encode()) + 200, MaxValue: len(l.Encode()) + 20},
		"value": {MaxOps: 40, MaxBytes: 1 << 19, MaxValue: len(rest.Encode()) + 100},
	} {
		t.Run(name, func(t *testing.T) {
			w := &wrapped{limits: limits}
			onBedOf(t, 40, func(s registry.Session) registry.Session { w.Session = s; return w }, func(b *bed) {
				b.rule(func(l *ledger.Ledger) {
					for n := range 40 {
						l.Set(n, ledger.Item{Through: due(0), Told: told(n)})
					}
				})
				b.rec.Refresh(false)
				synctest.Wait()
				for n := range 40 {
					b.submit(begin, due(1+n), n)
				}
				b.pass(5 * time.Second)
				is := b.take()
				require.NotEmpty(t, is.steps())
				require.Empty(t, is.no)
				require.Empty(t, is.gone)
				if name == "bytes" {
					require.Len(t, is.steps(), 40)
					return
				}
				// The others wait until the ends have made room, without a busy loop.
				require.Less(t, len(is.steps()), 40)
				require.NotEmpty(t, is.late)
				require.Less(t, len(is.late), 1000)
				begun := is.steps()
				for range 200 {
					for _, s := range begun {
						b.submit(end, s.due, s.item)
					}
					b.pass(2 * time.Second)
					begun = nil
					for _, s := range b.take().steps() {
						if s.kind == begin {
							begun = append(begun, s)
						}
					}
				}
				for n := range 40 {
					require.Equal(t, ledger.Item{Through: due(1 + n), Told: told(n)}, b.item(n))
				}
			})
		})
	}
	w := &wrapped{}
	invalid := fmt.Errorf("memory: %w", registry.ErrInvalid)
	w.err.Store(&invalid)
	onBedOf(t, 3, func(s registry.Session) registry.Session { w.Session = s; return w }, func(b *bed) {
		steps := b.submit(begin, due(1), numbers(3)...)
		b.pass(5 * time.Second)
		require.Less(t, w.tries.Load(), int64(100), "a busy loop")
		is := b.take()
		require.Empty(t, is.steps())
		require.Empty(t, is.no)
		w.err.Store(nil)
		b.pass(again)
		require.ElementsMatch(t, steps, b.take().steps())
	})
}

// The changes of an item that does not fit keep their order.
func TestWhatDoesNotFitKeepsItsOrder(t *testing.T) {
	w := &wrapped{}
	invalid := fmt.Errorf("memory: %w", registry.ErrInvalid)
	w.err.Store(&invalid)
	onBedOf(t, 3, func(s registry.Session) registry.Session { w.Session = s; return w }, func(b *bed) {
		first := b.submit(begin, due(1), 0)
		b.submit(begin, due(1), 1, 2)
		then := b.submit(end, due(1), 0)
		b.pass(5 * time.Second)
		w.err.Store(nil)
		b.pass(5 * time.Second)
		var of []*step
		for _, s := range b.take().steps() {
			if s.item == 0 {
				of = append(of, s)
			}
		}
		require.Equal(t, append(first, then...), of)
		require.False(t, b.item(0).Running())
	})
}

// The session is lost, without a word from the server: nothing is said of what is not known.
func TestTheSessionIsLost(t *testing.T) {
	for _, answers := range []bool{true, false} {
		onBed(t, 2, func(b *bed) {
			if answers {
				b.client.LoseAnswers()
			} else {
				b.client.LoseRequests()
			}
			b.submit(begin, due(1), 0, 1)
			b.pass(time.Minute)
			require.ErrorIs(t, b.ses.Err(), registry.ErrSessionLost)
			is := b.take()
			require.Empty(t, is.steps())
			require.Empty(t, is.no)
			require.Empty(t, is.gone)
		})
	}
}

// A hasty session says of each commit that it is lost before it is.
type hasty struct {
	registry.Session
	commits int
}

func (s *hasty) Commit(context.Context, ...registry.Op) (registry.Revision, error) {
	s.commits++
	return 0, registry.ErrSessionLost
}

// Whoever goes by Err does not ask without a pause until it says so too.
func TestACallKnowsFirstThatTheSessionIsLost(t *testing.T) {
	var s *hasty
	onBedOf(t, 1, func(inner registry.Session) registry.Session { s = &hasty{Session: inner}; return s }, func(b *bed) {
		b.submit(begin, due(1), 0)
		b.pass(again / 2)
		require.Equal(t, 1, s.commits)
		require.NoError(t, b.ses.Close(context.Background()))
		b.pass(time.Minute)
		require.Equal(t, 1, s.commits)
	})
}
