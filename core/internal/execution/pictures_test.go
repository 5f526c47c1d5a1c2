package execution

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/internal/layout/ledger"
	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/memory"
)

// requireShown requires that running nodes of ours stand for these items of five alone.
func (b *bed) requireShown(items ...int) {
	b.Helper()
	shown := []int{}
	for n := range 5 {
		if string(b.node(runningPath(n)).Value) == "a" {
			shown = append(shown, n)
		}
	}
	if len(items) == 0 {
		items = []int{}
	}
	require.Equal(b, items, shown)
}

func TestARunIsShownWhenItLasts(t *testing.T) {
	onBed(t, 5, func(b *bed) {
		b.submit(begin, due(1), numbers(5)...)
		b.pass(showAfter / 2)
		b.submit(end, due(1), 0, 1)
		b.pass(showAfter/2 - time.Nanosecond)
		b.requireShown()
		b.requireRequests(2, 0)
		b.pass(time.Nanosecond)
		b.requireShown(2, 3, 4)
		b.requireRequests(1, 0)
		version := b.node(ledgerPath).Version
		b.pass(time.Hour)
		require.Equal(t, version, b.node(ledgerPath).Version)
		b.requireRequests(0, 0)
		b.submit(end, due(1), 2, 3, 4)
		b.pass(time.Second)
		b.requireShown()
		b.requireRequests(1, 0) // the end's own commit removes them
		b.requireAtRest(due(1))
	})
}

func TestNothingIsShownWhereItIsSwitchedOff(t *testing.T) {
	onBed(t, 5, func(b *bed) {
		b.rec.Show(-time.Second, false)
		b.submit(begin, due(1), 0)
		b.pass(time.Hour)
		b.requireShown()
		b.rec.Show(time.Minute, false) // what runs counts from here
		b.pass(time.Second)
		b.requireShown(0)
		b.submit(begin, due(1), 1)
		b.pass(time.Minute - time.Nanosecond)
		b.requireShown(0)
		b.rec.Show(2*time.Minute, false)
		b.pass(time.Minute)
		b.requireShown(0)
		b.pass(time.Nanosecond)
		b.requireShown(0, 1)
	})
}

// A picture refuses no begin, whoever has made it, and is replaced by the run's own.
func TestAPictureRefusesNoBegin(t *testing.T) {
	for _, who := range []string{"b", "java"} {
		t.Run(who, func(t *testing.T) {
			onBed(t, 5, func(b *bed) {
				b.do(registry.CreateEphemeral(runningPath(0), []byte(who)))
				b.submit(begin, due(1), 0, 1)
				synctest.Wait()
				require.Len(t, b.take().steps(), 2)
				b.requireRequests(1, 0)
				b.pass(time.Minute)
				if who == "java" { // it is left alone, and so is the end
					b.requireShown(1)
				} else {
					b.requireShown(0, 1)
				}
				b.submit(end, due(1), 0, 1)
				b.pass(time.Second)
				require.Len(t, b.take().steps(), 2)
				b.requireShown()
				require.Equal(t, who == "java", b.node(runningPath(0)).Exists())
			})
		})
	}
}

// Beside an instance of ElasticJob running nodes are locks: made with the begin, and met by it.
func TestBesideJavaRunsAreShownFirst(t *testing.T) {
	onBed(t, 5, func(b *bed) {
		b.submit(begin, due(1), 0, 1)
		synctest.Wait()
		b.requireRequests(1, 0)
		release := b.hold()
		b.rec.Show(showAfter, true)
		synctest.Wait()
		steps := b.submit(begin, due(1), 2, 3)
		synctest.Wait()
		b.requireShown()
		require.False(t, b.item(2).Running(), "a begin waits until what runs is shown")
		release()
		synctest.Wait()
		b.requireShown(0, 1, 2, 3)
		b.requireRequests(2, 0)
		is := b.take()
		require.Equal(t, steps, is.applied[len(is.applied)-1].steps)
		require.Equal(t, is.applied[len(is.applied)-1].rev, b.node(runningPath(2)).Created)

		b.do(registry.CreateEphemeral(runningPath(4), []byte("java")))
		b.submit(begin, due(1), 4)
		synctest.Wait()
		require.Equal(t, Obstructed, b.take().no[0].why)
		b.do(registry.Set(runningPath(4), []byte("b"), registry.AnyVersion))
		b.submit(begin, due(1), 4)
		synctest.Wait()
		require.Len(t, b.take().steps(), 1, "what a Go member left behind is no lock")
		b.submit(end, due(1), numbers(5)...)
		b.pass(time.Second)
		b.requireAtRest(due(1))

		b.rec.Show(showAfter, false) // it has gone
		b.client.ResetRequests()
		b.submit(begin, due(2), 0)
		synctest.Wait()
		b.requireShown()
	})
}

// What becomes of a picture that it is not known of: it is never left behind.
func TestAPictureInDoubt(t *testing.T) {
	for name, fate := range map[string]memory.Fate{
		"answer lost": memory.AnswerLost, "request lost": memory.RequestLost, "refused": memory.Refused,
		"late": memory.AppliedLate(500 * time.Millisecond), "too late": memory.AppliedLate(time.Minute),
	} {
		for _, lasts := range []time.Duration{0, 200 * time.Millisecond, 10 * time.Second} {
			for _, taken := range []bool{false, true} {
				t.Run(fmt.Sprint(name, "/", lasts, "/", taken), func(t *testing.T) {
					onBed(t, 5, func(b *bed) {
						b.submit(begin, due(1), 0, 1)
						b.fates(memory.Deliver, fate)
						synctest.Wait()
						b.pass(showAfter)
						b.pass(lasts)
						if lasts > time.Second {
							b.requireShown(0, 1)
						}
						if taken { // by somebody's hand: nobody begins it, and its picture goes
							b.rule(func(l *ledger.Ledger) { l.Delete(0) })
							b.rec.Refresh(false)
						}
						steps := b.submit(end, due(1), 0, 1)
						b.pass(30 * time.Second)
						require.Len(t, b.take().steps(), 2+len(steps))
						b.requireShown()
						b.pass(10 * time.Minute)
						b.requireShown()
					})
				})
			}
		}
	}
}

// misses has items begin whose next fire comes due after a while.
func (b *bed) misses(after time.Duration, items ...int) {
	for _, n := range items {
		b.rec.Submit(&step{item: n, due: due(1), kind: begin, misses: time.Now().Add(after)})
	}
	synctest.Wait()
}

// requireMissed requires that misfire nodes of ours stand for these items of five alone.
func (b *bed) requireMissed(items ...int) {
	b.Helper()
	var missed []int
	for n := range 5 {
		if node := b.node(misfirePath(n)); string(node.Value) == "a" {
			require.True(b, node.Ephemeral, "ElasticJob's own are not")
			missed = append(missed, n)
		}
	}
	require.Equal(b, items, missed)
}

// A fire that is owed for longer than a second is shown, as long as the run before lasts: that is
// one commit, and the end's own removes it.
func TestAFireThatIsOwedIsShown(t *testing.T) {
	onBed(t, 5, func(b *bed) {
		b.rec.Show(time.Minute, false)
		b.misses(10*time.Second, 0, 1, 2)
		b.submit(begin, due(1), 3)
		synctest.Wait()
		b.client.ResetRequests()
		b.pass(10 * time.Second)
		b.submit(end, due(1), 2)
		b.pass(time.Second - time.Nanosecond)
		b.requireMissed()
		b.requireRequests(1, 0)
		b.pass(time.Nanosecond)
		b.requireMissed(0, 1)
		b.requireShown()
		b.requireRequests(1, 0)
		b.pass(time.Hour)
		b.requireMissed(0, 1)
		b.requireShown(0, 1, 3)
		b.requireRequests(1, 0)
		b.submit(end, due(1), 0, 1, 3)
		b.pass(time.Second)
		b.requireMissed()
		b.requireRequests(1, 0)
		require.Len(t, b.take().steps(), 8)
	})
}

// Short runs, and those that owe nothing, cost nothing; nor does one that is not to be shown.
func TestWhatIsNotOwedIsNotShown(t *testing.T) {
	onBed(t, 5, func(b *bed) {
		b.rec.Show(-1, false)
		b.misses(time.Second, 0)
		b.client.ResetRequests()
		b.pass(time.Hour)
		b.requireMissed()
		b.requireRequests(0, 0)
	})
}

// One of ElasticJob's own stays, and hinders nothing.
func TestAMisfireNodeOfElasticJobIsLeftAlone(t *testing.T) {
	onBed(t, 5, func(b *bed) {
		b.do(registry.Create(misfirePath(0), []byte("java")))
		b.misses(0, 0, 1)
		b.pass(10 * time.Second)
		b.requireMissed(1)
		b.submit(end, due(1), 0, 1)
		b.pass(time.Second)
		b.requireMissed()
		require.Equal(t, "java", string(b.node(misfirePath(0)).Value))
		require.Len(t, b.take().steps(), 4)
	})
}

// What is not known of it is found out: none is left behind, and the end counts.
func TestAMisfireNodeInDoubt(t *testing.T) {
	for name, fate := range map[string]memory.Fate{
		"answer lost": memory.AnswerLost, "request lost": memory.RequestLost, "refused": memory.Refused,
		"late": memory.AppliedLate(500 * time.Millisecond), "too late": memory.AppliedLate(time.Minute),
	} {
		for _, lasts := range []time.Duration{0, 200 * time.Millisecond, 10 * time.Second} {
			for _, hand := range []string{"", "deleted", "taken"} {
				t.Run(fmt.Sprint(name, "/", lasts, "/", hand), func(t *testing.T) {
					onBed(t, 5, func(b *bed) {
						b.rec.Show(time.Minute, false)
						b.misses(0, 0, 1)
						b.fates(fate)
						b.pass(missedAfter + lasts)
						if lasts > time.Second {
							b.requireMissed(0, 1)
							if hand == "deleted" {
								b.do(registry.Delete(misfirePath(0), registry.AnyVersion))
							}
						}
						if hand == "taken" {
							b.rule(func(l *ledger.Ledger) { l.Delete(0) })
							b.rec.Refresh(false)
						}
						steps := b.submit(end, due(1), 0, 1)
						b.pass(30 * time.Second)
						require.Len(t, b.take().steps(), 2+len(steps))
						b.requireMissed()
						b.pass(10 * time.Minute)
						b.requireMissed()
						b.requireShown()
					})
				})
			}
		}
	}
}

// The leader writes the ledger while the picture is made: it is made of the next version.
func TestAPictureOfALedgerThatHasChanged(t *testing.T) {
	onBed(t, 5, func(b *bed) {
		b.submit(begin, due(1), 0, 1)
		synctest.Wait()
		b.rule(func(l *ledger.Ledger) {
			rec, _ := l.Get(0)
			rec.Leaving = true
			l.Set(0, rec)
		})
		b.pass(showAfter)
		b.requireShown(0, 1)
		b.requireRequests(3, 1) // the begin, one in vain, and one after a look
	})
}

func TestAPictureThatIsDeniedHindersNothing(t *testing.T) {
	w := &wrapped{index: 1}
	onBedOf(t, 5, func(s registry.Session) registry.Session { w.Session = s; return w }, func(b *bed) {
		for k := range 3 {
			b.submit(begin, due(1+k), 0, 1)
			synctest.Wait()
			w.err.Store(&registry.ErrDenied)
			b.pass(2 * showAfter)
			b.requireShown()
			w.err.Store(nil)
			b.submit(end, due(1+k), 0, 1)
			b.pass(time.Second)
		}
		is := b.take()
		require.Len(t, is.steps(), 12)
		require.Len(t, is.unshown, 1, "told once")
		require.Empty(t, is.late)
	})
}

// The end of an item that is leaving tells the leader, in the same commit.
func TestTheEndOfAnItemThatIsLeavingIsTold(t *testing.T) {
	leave := func(b *bed, items ...int) {
		b.rule(func(l *ledger.Ledger) {
			for _, n := range items {
				rec, _ := l.Get(n)
				rec.Leaving = true
				l.Set(n, rec)
			}
		})
		b.rec.Refresh(false)
		synctest.Wait()
	}
	for name, spoil := range map[string]func(b *bed){
		"": func(*bed) {},
		"deleted": func(b *bed) {
			if b.node(roundsPath).Exists() {
				b.do(registry.Delete(roundsPath, registry.AnyVersion))
			}
		},
		"made by somebody": func(b *bed) {
			if !b.node(roundsPath).Exists() {
				require.NoError(b, registry.EnsurePath(b.Context(), b.other, roundsPath))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			onBed(t, 5, func(b *bed) {
				b.submit(begin, due(1), numbers(5)...)
				synctest.Wait()
				leave(b, 0, 1, 2, 3)
				b.submit(end, due(1), 4)
				b.pass(linger)
				require.False(t, b.node(roundsPath).Exists(), "nobody waits for it")
				var before registry.Revision
				for n := range 4 {
					spoil(b)
					k := end
					if n == 3 {
						k = giveBack
					}
					b.submit(k, due(1), n)
					b.pass(linger)
					at := b.node(roundsPath).Modified
					require.Greater(t, at, before)
					require.Equal(t, b.node(ledgerPath).Modified, at)
					before = at
				}
				require.Len(t, b.take().steps(), 10)
			})
		})
	}
}
