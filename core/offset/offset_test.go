package offset_test

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/core"
	"github.com/elasticron/elasticron/core/offset"
	"github.com/elasticron/elasticron/internal/layout"
	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/memory"
)

var hourly = core.JobConfig{Name: "flow", Cron: "0 0 * * * ?", Shards: 1}

// A bed is a registry in memory with what a test does behind the instances.
type bed struct {
	*testing.T
	srv   *memory.Server
	job   layout.Job
	other registry.Session
}

func onBed(t *testing.T, test func(b *bed)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := &bed{T: t, srv: memory.NewServer(memory.Config{SessionTimeout: 10 * time.Second})}
		var err error
		b.job, err = layout.New("shop", "flow")
		require.NoError(t, err)
		reg := b.srv.Registry("shop")
		b.other, err = reg.Open(t.Context())
		require.NoError(t, err)
		defer func() {
			b.srv.Intercept(nil)
			require.NoError(t, reg.Close())
		}()
		test(b)
	})
}

// An instance runs work, until the test ends.
type instance struct {
	*core.Scheduler
	reg  *memory.Registry
	runs chan core.Shard
	let  chan func(ctx context.Context, s core.Shard) error
}

// start starts an instance whose runs wait for what to do.
func (b *bed) start(name string, cfg core.JobConfig) *instance {
	b.Helper()
	in := &instance{reg: b.srv.Registry("shop"), runs: make(chan core.Shard, 9), let: make(chan func(context.Context, core.Shard) error)}
	in.Scheduler = core.New(in.reg, core.WithInstanceName(name), core.WithIP("127.0.0.1"), core.WithLogger(nil))
	require.NoError(b, in.Add(core.JobFunc(func(ctx context.Context, s core.Shard) error {
		in.runs <- s
		select {
		case f := <-in.let:
			return f(ctx, s)
		case <-s.Yield:
			return nil
		}
	}), cfg))
	require.NoError(b, in.Start(b.Context()))
	b.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		require.NoError(b, in.Stop(ctx))
		require.NoError(b, in.reg.Close())
	})
	return in
}

// run lets the next run of the instance do something.
func (b *bed) run(in *instance, f func(ctx context.Context, s core.Shard)) {
	b.Helper()
	<-in.runs
	b.let(in, f)
}

func (b *bed) let(in *instance, f func(ctx context.Context, s core.Shard)) {
	b.Helper()
	done := make(chan struct{})
	in.let <- func(ctx context.Context, s core.Shard) error {
		defer close(done)
		f(ctx, s)
		return nil
	}
	<-done
}

// open opens the offset of a run.
func (b *bed) open(ctx context.Context, s core.Shard) *offset.Offset {
	b.Helper()
	at, err := offset.Open(ctx, s, offset.Config{})
	require.NoError(b, err)
	return at
}

func (b *bed) do(ops ...registry.Op) {
	b.Helper()
	_, err := b.other.Commit(context.Background(), ops...)
	require.NoError(b, err)
}

func (b *bed) stored(item int) (layout.Offset, registry.Node) {
	b.Helper()
	nodes, err := b.other.Get(context.Background(), b.job.Offset(item))
	require.NoError(b, err)
	require.True(b, nodes[0].Exists(), "no offset is stored")
	v, err := layout.UnmarshalOffset(nodes[0].Value)
	require.NoError(b, err)
	return v, nodes[0]
}

// A job without offsets has no node of them. The first Set makes the directory, the next run goes
// on where the last one was, and the counts of both stand in one interval or two.
func TestOffsetGoesOn(t *testing.T) {
	onBed(t, func(b *bed) {
		in := b.start("a", hourly)
		b.run(in, func(ctx context.Context, s core.Shard) {
			at := b.open(ctx, s)
			require.Equal(b, offset.Position{}, at.Position())
			require.NoError(b, at.Set(ctx, "7", offset.Counted{Success: 7}))
			<-time.After(time.Minute)
			require.NoError(b, at.Set(ctx, "9", offset.Counted{Success: 1, Failure: 1}))
			p := at.Position()
			require.Equal(b, "9", p.Offset)
			require.Equal(b, []int64{8, 1}, []int64{p.Success, p.Failure})
			require.Equal(b, []offset.Count{{Instance: s.Instance, Since: s.Due.UTC(), Until: s.Due.Add(time.Minute).UTC(), Success: 8, Failure: 1}}, p.Counts)
		})
		b.run(in, func(ctx context.Context, s core.Shard) {
			at := b.open(ctx, s)
			require.Empty(b, at.Before())
			require.Equal(b, "9", at.Position().Offset)
			<-time.After(time.Minute)
			require.NoError(b, at.Set(ctx, "10", offset.Counted{Success: 1}))
			p := at.Position()
			require.Equal(b, 1, p.Total)
			require.Equal(b, s.Instance, p.By)
			require.Len(b, p.Counts, 2)
			require.Equal(b, offset.Count{Instance: s.Instance, Since: s.Due.UTC(), Until: s.Due.Add(time.Minute).UTC(), Success: 1}, p.Counts[0])
			require.EqualValues(b, 9, p.Success)
		})
		v, _ := b.stored(0)
		require.EqualValues(b, 3, v.Seq)
		require.Equal(b, "10", v.Offset)
	})
}

// Counts are kept for some intervals; the sums for good.
func TestCountsAreBounded(t *testing.T) {
	onBed(t, func(b *bed) {
		b.run(b.start("a", hourly), func(ctx context.Context, s core.Shard) {
			at, err := offset.Open(ctx, s, offset.Config{CountInterval: time.Second})
			require.NoError(b, err)
			for i := range 40 {
				<-time.After(time.Second)
				require.NoError(b, at.Set(ctx, fmt.Sprint(i), offset.Counted{Success: 1}))
			}
			require.NoError(b, at.Set(ctx, "x", offset.Counted{}))
			p := at.Position()
			require.Len(b, p.Counts, 16)
			require.EqualValues(b, 40, p.Success)
		})
	})
}

// ElasticJob 1's offset is where an item starts, and is read no more once ours stands.
func TestStartsWhereElasticJob1Was(t *testing.T) {
	onBed(t, func(b *bed) {
		in := b.start("a", hourly)
		b.do(registry.Create(path.Dir(b.job.OldOffset(0)), nil), registry.Create(b.job.OldOffset(0), []byte("4711")))
		b.run(in, func(ctx context.Context, s core.Shard) {
			at := b.open(ctx, s)
			require.Equal(b, offset.Position{Offset: "4711"}, at.Position())
			require.NoError(b, at.Set(ctx, "4712", offset.Counted{}))
		})
		b.do(registry.Set(b.job.OldOffset(0), []byte("1"), registry.AnyVersion))
		b.run(in, func(ctx context.Context, s core.Shard) {
			require.Equal(b, "4712", b.open(ctx, s).Position().Offset)
		})
	})
}

// In the steady state a Set is one commit and no read, though the ledger changes with other items.
func TestSetCostsOneCommit(t *testing.T) {
	onBed(t, func(b *bed) {
		cfg := hourly
		cfg.Shards, cfg.ShowRunningAfter = 2, -1
		in := b.start("a", cfg)
		first, second := <-in.runs, <-in.runs
		require.NotEqual(b, first.Item, second.Item)
		sets := 0
		b.let(in, func(ctx context.Context, s core.Shard) {
			at := b.open(ctx, s)
			require.NoError(b, at.Set(ctx, "1", offset.Counted{}))
			b.let(in, func(context.Context, core.Shard) {}) // the other item ends, and sets the ledger
			<-time.After(time.Second)
			before := in.reg.Requests()
			for ; sets < 5; sets++ {
				require.NoError(b, at.Set(ctx, fmt.Sprint(sets), offset.Counted{Success: 1}))
			}
			after := in.reg.Requests()
			require.Equal(b, before.Get, after.Get)
			require.Equal(b, sets, after.Commit-before.Commit)
		})
	})
}

// An instance that was paused, and whose item another one has by now, sets nothing, and what the
// other one has set stays.
func TestAPausedOwnerIsRefused(t *testing.T) {
	onBed(t, func(b *bed) {
		a := b.start("a", hourly)
		<-a.runs
		var at *offset.Offset
		var refused error
		goOn, over := make(chan struct{}), make(chan struct{})
		a.let <- func(ctx context.Context, s core.Shard) error {
			defer close(over)
			at = b.open(ctx, s)
			require.NoError(b, at.Set(ctx, "1", offset.Counted{Success: 1}))
			<-goOn
			// It does not know yet, and does not heed its context.
			refused = at.Set(context.WithoutCancel(ctx), "2", offset.Counted{Success: 1})
			return nil
		}
		synctest.Wait()
		c := b.start("c", hourly)
		b.srv.Expire(a.State().Session) // as after a pause: it learns of it with its next request
		b.run(c, func(ctx context.Context, s core.Shard) {
			require.NoError(b, b.open(ctx, s).Set(ctx, "10", offset.Counted{Success: 9}))
		})
		close(goOn)
		<-over
		require.Error(b, refused)
		require.True(b, errors.Is(refused, offset.ErrNotOwner) || errors.Is(refused, registry.ErrSessionLost), refused)
		require.Equal(b, refused, at.Set(b.Context(), "3", offset.Counted{}), "what stands is not known any more")
		v, _ := b.stored(0)
		require.Equal(b, "10", v.Offset)
		require.EqualValues(b, 10, v.Success)
	})
}

// A registration that is made anew in the same session owns the item on, and so does its run.
func TestARegistrationThatIsMadeAnew(t *testing.T) {
	onBed(t, func(b *bed) {
		in := b.start("a", hourly)
		b.run(in, func(ctx context.Context, s core.Shard) {
			at := b.open(ctx, s)
			require.NoError(b, at.Set(ctx, "1", offset.Counted{}))
			b.do(registry.Delete(b.job.Life(s.Instance), registry.AnyVersion))
			require.NoError(b, at.Set(ctx, "2", offset.Counted{}))
			require.NotEqual(b, s.Instance, in.State().Jobs[0].Instance)
		})
		v, _ := b.stored(0)
		require.Equal(b, "2", v.Offset)
	})
}

// Where the leader has given the item to somebody else, the life alone does not make an owner.
func TestALedgerWithoutTheItem(t *testing.T) {
	onBed(t, func(b *bed) {
		in := b.start("a", hourly)
		b.run(in, func(ctx context.Context, s core.Shard) {
			at := b.open(ctx, s)
			require.NoError(b, at.Set(ctx, "1", offset.Counted{}))
			nodes, err := b.other.Get(ctx, b.job.Ledger(s.Instance))
			require.NoError(b, err)
			lost := strings.Replace(string(nodes[0].Value), `"groups":[`, `"groups":[],"were":[`, 1)
			require.NotEqual(b, string(nodes[0].Value), lost)
			b.do(registry.Set(b.job.Ledger(s.Instance), []byte(lost), registry.AnyVersion),
				registry.Set(b.job.Notice(s.Instance), []byte("x"), registry.AnyVersion))
			require.ErrorIs(b, at.Set(ctx, "2", offset.Counted{}), offset.ErrNotOwner)
		})
		v, _ := b.stored(0)
		require.Equal(b, "1", v.Offset)
	})
}

// Somebody else, a person say, has set the offset while the run went on.
func TestMoved(t *testing.T) {
	onBed(t, func(b *bed) {
		b.run(b.start("a", hourly), func(ctx context.Context, s core.Shard) {
			at := b.open(ctx, s)
			require.NoError(b, at.Set(ctx, "1", offset.Counted{}))
			again := b.open(ctx, s)
			require.NoError(b, again.Set(ctx, "5", offset.Counted{}))
			require.ErrorIs(b, at.Set(ctx, "2", offset.Counted{}), offset.ErrMoved)
			first, err := offset.Open(ctx, s, offset.Config{})
			require.NoError(b, err)
			require.Equal(b, "5", first.Position().Offset)
		})
	})
}

// However the answers of its commits get lost, a Set is applied once and counted once.
func TestUncertainCommitsCountOnce(t *testing.T) {
	for name, fates := range map[string][]memory.Fate{
		"answer lost":              {memory.AnswerLost},
		"request lost":             {memory.RequestLost},
		"applied late":             {memory.AppliedLate(3 * time.Second)},
		"late, and another lost":   {memory.AppliedLate(60 * time.Millisecond), memory.RequestLost, memory.AnswerLost},
		"two lost, answer lost":    {memory.RequestLost, memory.RequestLost, memory.AnswerLost},
		"refused, late":            {memory.Refused, memory.AppliedLate(time.Second)},
		"answer lost, answer lost": {memory.AnswerLost, memory.AnswerLost},
	} {
		for _, first := range []bool{true, false} { // the Set that makes the nodes, or the next
			t.Run(fmt.Sprint(name, " ", first), func(t *testing.T) {
				onBed(t, func(b *bed) {
					b.run(b.start("a", hourly), func(ctx context.Context, s core.Shard) {
						at := b.open(ctx, s)
						if !first {
							require.NoError(b, at.Set(ctx, "0", offset.Counted{}))
						}
						var n atomic.Int32
						b.srv.Intercept(func(_ string, ops []registry.Op) memory.Fate {
							if last := ops[len(ops)-1].Path; last != b.job.Offset(0) {
								return memory.Deliver
							}
							if k := int(n.Add(1)) - 1; k < len(fates) {
								return fates[k]
							}
							return memory.Deliver
						})
						require.NoError(b, at.Set(ctx, "5", offset.Counted{Success: 5}))
						require.NoError(b, at.Set(ctx, "7", offset.Counted{Success: 2, Failure: 1}))
						<-time.After(10 * time.Second) // what is late comes
						p := b.open(ctx, s).Position()
						require.Equal(b, "7", p.Offset)
						require.EqualValues(b, 7, p.Success)
						require.EqualValues(b, 1, p.Failure)
						require.Len(b, p.Counts, 1)
					})
				})
			})
		}
	}
}

// With another total offsets say nothing about the present items, and are shown until the first Set.
func TestAnotherTotal(t *testing.T) {
	onBed(t, func(b *bed) {
		cfg := hourly
		cfg.Shards = 2
		in := b.start("a", cfg)
		for range 2 {
			b.run(in, func(ctx context.Context, s core.Shard) {
				require.NoError(b, b.open(ctx, s).Set(ctx, fmt.Sprint("old ", s.Item), offset.Counted{Success: 1}))
			})
		}
		nodes, err := b.other.Get(b.Context(), b.job.Config())
		require.NoError(b, err)
		b.do(registry.Set(b.job.Config(), []byte(strings.Replace(string(nodes[0].Value), "shardingTotalCount: 2", "shardingTotalCount: 3", 1)), registry.AnyVersion))
		for range 3 {
			b.run(in, func(ctx context.Context, s core.Shard) {
				require.Equal(b, 3, s.Total)
				at := b.open(ctx, s)
				before := at.Before()
				require.Len(b, before, 2)
				for i, p := range before {
					require.Equal(b, []any{i, 2, fmt.Sprint("old ", i)}, []any{p.Item, p.Total, p.Offset})
				}
				require.NoError(b, at.Set(ctx, "new", offset.Counted{Success: 1}))
				require.Empty(b, at.Before())
				require.Empty(b, b.open(ctx, s).Before())
			})
		}
		v, _ := b.stored(1)
		require.Equal(b, &layout.Earlier{Offset: "old 1", Total: 2}, v.Before)
		require.EqualValues(b, 2, v.Success)
	})
}

func TestBadOffsets(t *testing.T) {
	onBed(t, func(b *bed) {
		b.run(b.start("a", hourly), func(ctx context.Context, s core.Shard) {
			at := b.open(ctx, s)
			require.ErrorContains(b, at.Set(ctx, strings.Repeat("x", offset.MaxLength+1), offset.Counted{}), "has 32769 bytes, at most 32768 fit")
			require.ErrorContains(b, at.Set(ctx, "\xff", offset.Counted{}), "is not UTF-8")
			require.ErrorContains(b, at.Set(ctx, "x", offset.Counted{Failure: -1}), "a count is negative")
			require.NoError(b, at.Set(ctx, strings.Repeat("x", offset.MaxLength), offset.Counted{Success: 1}))
			_, n := b.stored(0)
			b.do(registry.Set(n.Path, []byte("12"), registry.AnyVersion))
			_, err := offset.Open(ctx, s, offset.Config{})
			require.ErrorIs(b, err, core.ErrConfig)
		})
	})
}

// Without monitoring nothing says that the item runs, and its owner sets the offset all the same.
func TestWithoutMonitoring(t *testing.T) {
	onBed(t, func(b *bed) {
		cfg := hourly
		cfg.Monitor = core.MonitorOff
		b.run(b.start("a", cfg), func(ctx context.Context, s core.Shard) {
			require.NoError(b, b.open(ctx, s).Set(ctx, "1", offset.Counted{}))
		})
		v, _ := b.stored(0)
		require.Equal(b, "1", v.Offset)
	})
}

// In a Shard that no scheduler made the offset is kept in memory.
func TestWithoutAScheduler(t *testing.T) {
	at, err := offset.Open(t.Context(), core.Shard{Item: 3, Total: 4}, offset.Config{})
	require.NoError(t, err)
	require.NoError(t, at.Set(t.Context(), "1", offset.Counted{Success: 1}))
	require.Equal(t, "1", at.Position().Offset)
	require.Equal(t, 4, at.Position().Total)
}

// Two offsets of one run that are set at the same time share its hold on the item, and one of them is moved.
func TestOffsetsOfOneRunAtTheSameTime(t *testing.T) {
	onBed(t, func(b *bed) {
		b.run(b.start("a", hourly), func(ctx context.Context, s core.Shard) {
			errs, set := make(chan error, 2), 0
			for _, at := range []*offset.Offset{b.open(ctx, s), b.open(ctx, s)} {
				go func() { errs <- at.Set(ctx, "1", offset.Counted{Success: 1}) }()
			}
			for range cap(errs) {
				if err := <-errs; err == nil {
					set++
				} else {
					require.ErrorIs(b, err, offset.ErrMoved)
				}
			}
			require.Equal(b, 1, set)
		})
		v, _ := b.stored(0)
		require.EqualValues(b, 1, v.Success)
	})
}
