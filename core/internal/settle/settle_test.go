package settle

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/memory"
)

const (
	guard  = "/guard"  // checked
	marker = "/marker" // set to what each commit alone says
	effect = "/effect" // made
)

// A bed is a server with a session that commits and another one.
type bed struct {
	*testing.T
	srv        *memory.Server
	client     *memory.Registry
	ses, other registry.Session
	commits    int
	neutral    int // how often Neutral was asked
	hindered   []error
}

func onBed(t *testing.T, test func(b *bed)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := &bed{T: t, srv: memory.NewServer(memory.Config{})}
		b.client = b.srv.Registry("shop")
		var err error
		b.ses, err = b.client.Open(t.Context())
		require.NoError(t, err)
		b.other, err = b.srv.Registry("shop").Open(t.Context())
		require.NoError(t, err)
		b.do(registry.Create(guard, nil), registry.Create(marker, nil))
		defer func() {
			b.srv.Intercept(nil)
			_ = b.ses.Close(context.Background()) // some tests have cut it off
			require.NoError(t, b.other.Close(context.Background()))
			synctest.Wait()
		}()
		test(b)
	})
}

func (b *bed) do(ops ...registry.Op) {
	b.Helper()
	_, err := b.other.Commit(context.Background(), ops...)
	require.NoError(b, err)
}

func (b *bed) node(path string) registry.Node {
	b.Helper()
	nodes, err := b.other.Get(context.Background(), path)
	require.NoError(b, err)
	return nodes[0]
}

// commit is the next commit: it sets the marker and makes the effect.
func (b *bed) commit() Commit {
	b.commits++
	value := fmt.Sprint("commit ", b.commits)
	version := b.node(marker).Version
	return Commit{
		Store: b.ses, Marker: 1,
		Ops: []registry.Op{
			registry.Check(guard, registry.AnyVersion), registry.Set(marker, []byte(value), version),
			registry.CreateEphemeral(effect, []byte(value)),
		},
		Shows: func(n registry.Node) bool { return string(n.Value) == value },
		Neutral: func() []registry.Op {
			b.neutral++
			return []registry.Op{registry.Check(guard, registry.AnyVersion), registry.Set(marker, []byte("neutral"), version)}
		},
	}
}

func (b *bed) run(ctx context.Context, c Commit) (Outcome, error) {
	return c.Run(ctx, func(err error) { b.hindered = append(b.hindered, err) })
}

// fates decides on the next commits of the session, and calls act before the k-th.
func (b *bed) fates(act map[int]func(), all ...memory.Fate) {
	var next atomic.Int32
	b.srv.Intercept(func(id string, _ []registry.Op) memory.Fate {
		if id != b.ses.ID() {
			return memory.Deliver
		}
		k := int(next.Add(1)) - 1
		if f := act[k]; f != nil {
			f()
		}
		if k < len(all) {
			return all[k]
		}
		return memory.Deliver
	})
}

var kinds = map[string]memory.Fate{
	"delivered": memory.Deliver, "answer lost": memory.AnswerLost, "request lost": memory.RequestLost,
	"refused": memory.Refused,
	"late":    memory.AppliedLate(3 * time.Second), "soon": memory.AppliedLate(60 * time.Millisecond),
}

// requireCommitted requires that the effect is there, and stays so, and that nothing else is.
func (b *bed) requireCommitted(out Outcome) {
	b.Helper()
	want := b.node(effect)
	require.True(b, want.Exists())
	require.Equal(b, want.Created, out.Revision)
	version := b.node(marker).Version
	time.Sleep(10 * time.Second)
	require.Equal(b, want, b.node(effect))
	require.Equal(b, version, b.node(marker).Version, "a late attempt was applied")
}

func TestACommitIsAppliedOnce(t *testing.T) {
	for first, x := range kinds {
		for second, y := range kinds {
			t.Run(first+"/"+second, func(t *testing.T) {
				onBed(t, func(b *bed) {
					c := b.commit()
					b.fates(nil, x, y)
					out, err := b.run(b.Context(), c)
					require.NoError(t, err)
					b.requireCommitted(out)
					require.Zero(t, b.neutral, "every refusal was at the marker")
					require.Equal(t, string(c.Ops[1].Value), string(b.node(marker).Value))
					if first == "delivered" {
						require.False(t, out.Uncertain)
					}
				})
			})
		}
	}
}

// A node is in the way. Whatever becomes of the attempts, the commit is refused for good.
func TestARefusalIsForGood(t *testing.T) {
	for first, x := range kinds {
		for second, y := range kinds {
			t.Run(first+"/"+second, func(t *testing.T) {
				onBed(t, func(b *bed) {
					b.do(registry.Create(effect, []byte("other")))
					b.fates(map[int]func(){2: func() { b.do(registry.Delete(effect, 0)) }}, x, y)
					_, err := b.run(b.Context(), b.commit())
					b.srv.Intercept(nil)
					if b.node(effect).Exists() && string(b.node(effect).Value) != "other" {
						require.NoError(t, err, "the third attempt found the way free")
						return
					}
					failed, ok := errors.AsType[*registry.CommitError](err)
					require.True(t, ok, "%v", err)
					require.Equal(t, 2, failed.Index)
					require.ErrorIs(t, err, registry.ErrExists)
					if b.node(effect).Exists() {
						b.do(registry.Delete(effect, 0))
					}
					time.Sleep(10 * time.Second)
					require.False(t, b.node(effect).Exists(), "a late attempt was applied")
				})
			})
		}
	}
}

// Neutral costs a request, and is there for an uncertain outcome alone.
func TestNeutralIsUsedInDoubtOnly(t *testing.T) {
	for name, c := range map[string]struct {
		fates   []memory.Fate
		neutral int
	}{
		"certain":          {nil, 0},
		"not sent":         {[]memory.Fate{memory.Refused}, 0},
		"uncertain":        {[]memory.Fate{memory.RequestLost}, 1},
		"itself uncertain": {[]memory.Fate{memory.RequestLost, memory.Deliver, memory.AnswerLost}, 2},
		"itself lost":      {[]memory.Fate{memory.RequestLost, memory.Deliver, memory.RequestLost}, 2},
		"after what it was to settle": {[]memory.Fate{memory.RequestLost, memory.Deliver,
			memory.AppliedLate(time.Second)}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			onBed(t, func(b *bed) {
				b.do(registry.Create(effect, []byte("other")))
				b.fates(nil, c.fates...)
				out, err := b.run(b.Context(), b.commit())
				require.ErrorIs(t, err, registry.ErrExists)
				require.Equal(t, c.neutral, b.neutral)
				require.Equal(t, c.neutral > 0, out.Uncertain)
			})
		})
	}
	// Without it every refusal rules out all attempts.
	onBed(t, func(b *bed) {
		b.do(registry.Create(effect, []byte("other")))
		b.fates(nil, memory.RequestLost)
		c := b.commit()
		c.Neutral = nil
		_, err := b.run(b.Context(), c)
		require.ErrorIs(t, err, registry.ErrExists)
	})
}

// The marker has moved on: somebody else's write, before or after one of the attempts.
func TestTheMarkerMovesOn(t *testing.T) {
	for name, applied := range map[string]bool{"before it": false, "after it": true} {
		t.Run(name, func(t *testing.T) {
			onBed(t, func(b *bed) {
				c := b.commit()
				keep := c.Shows
				// As a ledger's Seq, what shows the commit outlives the writes of others.
				c.Shows = func(n registry.Node) bool { return keep(n) || string(n.Value) == string(c.Ops[1].Value)+" moved on" }
				fate := memory.RequestLost
				value := "moved on"
				if applied {
					fate, value = memory.AnswerLost, string(c.Ops[1].Value)+" moved on"
				}
				b.fates(map[int]func(){1: func() { b.do(registry.Set(marker, []byte(value), registry.AnyVersion)) }}, fate)
				out, err := b.run(b.Context(), c)
				require.Equal(t, applied, b.node(effect).Exists())
				if applied {
					require.NoError(t, err)
					require.Equal(t, b.node(marker).Modified, out.Revision)
					require.True(t, out.Uncertain)
					return
				}
				require.ErrorIs(t, err, registry.ErrVersion)
				require.True(t, out.Uncertain)
			})
		})
	}
	onBed(t, func(b *bed) { // while outcomes are known nothing is read
		b.client.ResetRequests()
		c := b.commit()
		b.do(registry.Set(marker, nil, registry.AnyVersion))
		out, err := b.run(b.Context(), c)
		require.ErrorIs(t, err, registry.ErrVersion)
		require.False(t, out.Uncertain)
		require.Zero(t, b.client.Requests().Get)
	})
}

// wrapped is a store whose commits and reads are denied while it is set.
type wrapped struct {
	registry.Session
	deny  atomic.Bool
	err   error
	tries int
}

func (w *wrapped) Commit(ctx context.Context, ops ...registry.Op) (registry.Revision, error) {
	w.tries++
	if w.deny.Load() {
		return 0, w.err
	}
	return w.Session.Commit(ctx, ops...)
}

func (w *wrapped) Get(ctx context.Context, paths ...string) ([]registry.Node, error) {
	if w.deny.Load() {
		return nil, registry.ErrDenied
	}
	return w.Session.Get(ctx, paths...)
}

// ErrDenied is final, but not while an attempt's outcome hangs on another answer.
func TestDenied(t *testing.T) {
	denied := &registry.CommitError{Index: 1, Err: registry.ErrDenied}
	for _, err := range []error{registry.ErrDenied, denied} {
		onBed(t, func(b *bed) {
			w := &wrapped{Session: b.ses, err: err}
			w.deny.Store(true)
			c := b.commit()
			c.Store = w
			out, err := b.run(b.Context(), c)
			require.ErrorIs(t, err, registry.ErrDenied)
			require.False(t, out.Uncertain)
			require.Equal(t, 1, w.tries)
		})
		onBed(t, func(b *bed) {
			w := &wrapped{Session: b.ses, err: err}
			c := b.commit()
			c.Store = w
			b.fates(map[int]func(){0: func() { w.deny.Store(true) }}, memory.AnswerLost)
			time.AfterFunc(10*time.Second, func() { w.deny.Store(false) })
			out, err := b.run(b.Context(), c)
			require.NoError(t, err)
			require.True(t, out.Uncertain)
			require.InDelta(t, 9, len(b.hindered), 1, "about once a second")
			require.True(t, b.node(effect).Exists())
		})
	}
}

func TestInvalidIsFinal(t *testing.T) {
	onBed(t, func(b *bed) {
		c := b.commit()
		c.Ops[2].Path = "nonsense"
		out, err := b.run(b.Context(), c)
		require.ErrorIs(t, err, registry.ErrInvalid)
		require.Equal(t, Outcome{}, out)
	})
}

func TestTheContextEnds(t *testing.T) {
	for name, fate := range map[string]memory.Fate{"uncertain": memory.RequestLost, "not sent": memory.Refused} {
		t.Run(name, func(t *testing.T) {
			onBed(t, func(b *bed) {
				ctx, cancel := context.WithTimeout(b.Context(), 5*time.Second)
				defer cancel()
				b.fates(nil, fate, memory.Refused, memory.Refused, memory.Refused, memory.Refused, memory.Refused,
					memory.Refused, memory.Refused,
					memory.Refused, memory.Refused, memory.Refused, memory.Refused)
				begun := time.Now()
				out, err := b.run(ctx, b.commit())
				require.Error(t, err)
				require.Equal(t, 5*time.Second, time.Since(begun))
				require.Equal(t, name == "uncertain", out.Uncertain)
			})
		})
	}
}

func TestTheSessionIsLost(t *testing.T) {
	for name, cut := range map[string]func(b *bed){
		"answers":  func(b *bed) { b.client.LoseAnswers() },
		"requests": func(b *bed) { b.client.LoseRequests() },
		"expired":  func(b *bed) { b.srv.Expire(b.ses.ID()) },
	} {
		t.Run(name, func(t *testing.T) {
			onBed(t, func(b *bed) {
				c := b.commit()
				cut(b)
				_, err := b.run(context.Background(), c)
				require.ErrorIs(t, err, registry.ErrSessionLost)
				_, err = Get(context.Background(), b.ses, nil, marker)
				require.ErrorIs(t, err, registry.ErrSessionLost)
			})
		})
	}
}

func TestGetWaitsForTheAnswer(t *testing.T) {
	onBed(t, func(b *bed) {
		w := &wrapped{Session: b.ses}
		w.deny.Store(true)
		time.AfterFunc(10*time.Second, func() { w.deny.Store(false) })
		count := 0
		nodes, err := Get(b.Context(), w, func(error) { count++ }, marker, guard)
		require.NoError(t, err)
		require.Len(t, nodes, 2)
		require.InDelta(t, 9, count, 1)
		ctx, cancel := context.WithTimeout(b.Context(), time.Second)
		defer cancel()
		w.deny.Store(true)
		_, err = Get(ctx, w, nil, marker)
		require.ErrorIs(t, err, registry.ErrDenied)
		require.False(t, Pause(ctx, time.Second))
		require.True(t, Pause(b.Context(), time.Second))
	})
}

// Whatever becomes of the attempts, and whatever others write, nil says that the commit was
// applied once, and a refusal that it was not and will not be.
func TestWhateverHappensTheOutcomeIsTrue(t *testing.T) {
	fates := []memory.Fate{
		memory.AnswerLost, memory.RequestLost, memory.Refused, memory.AppliedLate(3 * time.Second),
		memory.AppliedLate(70 * time.Millisecond),
	}
	applied, refused := 0, 0
	for seed := range uint64(60) {
		onBed(t, func(b *bed) {
			random := rand.New(rand.NewPCG(seed, 7))
			b.srv.Intercept(func(id string, _ []registry.Op) memory.Fate {
				if id != b.ses.ID() {
					return memory.Deliver
				}
				switch random.IntN(10) {
				case 0, 1: // somebody puts a node in the way, or takes it out
					op := registry.Create(effect, []byte("other"))
					if b.node(effect).Exists() {
						op = registry.Delete(effect, registry.AnyVersion)
					}
					b.do(op)
				case 2, 3: // writes the marker, and leaves what is shown
					b.do(registry.Set(marker, b.node(marker).Value, registry.AnyVersion))
				}
				if random.IntN(10) < 4 {
					return memory.Deliver
				}
				return fates[random.IntN(len(fates))]
			})
			for range 20 {
				c := b.commit()
				want := string(c.Ops[1].Value)
				made := 0
				c.Ops[2] = registry.Create(fmt.Sprint(effect, b.commits), nil)
				if random.IntN(3) == 0 {
					c.Ops[2] = registry.Create(effect, []byte(want))
				}
				_, err := b.run(b.Context(), c)
				time.Sleep(time.Duration(random.IntN(5)) * time.Second)
				if c.Shows(b.node(marker)) {
					made++
				}
				if err == nil {
					applied++
					require.Equal(t, 1, made, "seed %d, %s", seed, want)
					continue
				}
				refused++
				_, ok := errors.AsType[*registry.CommitError](err)
				require.True(t, ok, "%v", err)
				require.Zero(t, made, "seed %d, %s: %v", seed, want, err)
			}
		})
	}
	require.Greater(t, min(applied, refused), 100, "chance has played too little")
}
