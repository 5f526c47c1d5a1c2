package admin

import (
	"context"
	"errors"
	"time"

	"github.com/elasticron/elasticron/registry"
)

const (
	// settlePause is the pause after a commit whose outcome is not known.
	settlePause = 50 * time.Millisecond
	// firstPause and lastPause bound the pause after one that was refused, but for the first.
	firstPause, lastPause = 10 * time.Millisecond, time.Second
)

// edit commits what plan asks for until plan, which reads anew each time, asks for
// nothing more. So others may write the same nodes meanwhile, and a commit whose answer
// was lost is settled: either plan finds what it wants, or the next commit, at the
// version that was read, excludes the lost one. What is refused again and again, as by a
// server of ZooKeeper that lacks a change, is tried ever more rarely.
func (a *Admin) edit(ctx context.Context, plan func(ctx context.Context) ([]registry.Op, error)) error {
	return a.repeat(ctx, func() error {
		for wait := time.Duration(0); ; wait = min(max(2*wait, firstPause), lastPause) {
			if err := a.store.Sync(ctx); err != nil {
				return err
			}
			ops, err := plan(ctx)
			if err != nil || len(ops) == 0 {
				return err
			}
			if err = a.commit(ctx, ops); !overtaken(err) {
				return err
			}
			if !pause(ctx, wait) {
				return errors.Join(err, context.Cause(ctx))
			}
		}
	})
}

// repeat repeats what may be repeated, until its outcome is known. One that never became
// known stays in the error.
func (a *Admin) repeat(ctx context.Context, do func() error) error {
	var open error
	for {
		err := do()
		switch {
		case err == nil:
			return nil
		case !errors.Is(err, registry.ErrUncertain):
			return errors.Join(open, err)
		}
		if open = err; !pause(ctx, settlePause) {
			return err
		}
	}
}

// commit commits operations that do not depend on each other, in as many commits as they
// need.
func (a *Admin) commit(ctx context.Context, ops []registry.Op) error {
	for fits := a.store.Limits().MaxOps; len(ops) > 0; {
		n := min(len(ops), fits)
		if _, err := a.store.Commit(ctx, ops[:n]...); err != nil {
			return err
		}
		ops = ops[n:]
	}
	return nil
}

// overtaken reports whether somebody else has changed what a commit was made of.
func overtaken(err error) bool {
	return errors.Is(err, registry.ErrVersion) || errors.Is(err, registry.ErrNotFound) || errors.Is(err, registry.ErrExists) ||
		errors.Is(err, registry.ErrNoParent) || errors.Is(err, registry.ErrNotEmpty)
}

func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
