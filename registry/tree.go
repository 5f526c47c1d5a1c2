package registry

import (
	"context"
	"errors"
	pathpkg "path"
	"slices"
	"time"
)

// EnsurePath makes the persistent node path and the parents it lacks, all with empty values, and leaves those that
// exist. It is idempotent and may be repeated after any error.
func EnsurePath(ctx context.Context, s Store, path string) error {
	if err := ValidatePath(path); err != nil {
		return err
	}
	var again repeated
	for {
		nodes, err := s.Get(ctx, lineage(path)...)
		if err != nil {
			return err
		}
		var ops []Op
		for _, n := range nodes {
			if !n.Exists() {
				ops = append(ops, Create(n.Path, nil))
			}
		}
		if len(ops) == 0 {
			return nil
		}
		for some := range slices.Chunk(ops, s.Limits().MaxOps) {
			if _, err = s.Commit(ctx, some...); err != nil {
				break
			}
		}
		if err != nil && !errors.Is(err, ErrExists) && !errors.Is(err, ErrNoParent) {
			return err
		}
		if err != nil {
			if err := again.wait(ctx, paths(ops)); err != nil {
				return err
			}
		}
	}
}

func paths(ops []Op) []string {
	paths := make([]string, len(ops))
	for i, op := range ops {
		paths[i] = op.Path
	}
	return paths
}

// A repeated request is one that was refused, and goes by what was read since.
type repeated struct {
	read  []string
	pause time.Duration
}

const firstPause, lastPause = 10 * time.Millisecond, time.Second

// wait waits where the same was read as before, ever longer: a server of ZooKeeper that lacks a change shows it unchanged,
// and refuses what goes by that, until it has caught up, or another one answers.
func (r *repeated) wait(ctx context.Context, read []string) error {
	if !slices.Equal(r.read, read) {
		r.read, r.pause = read, firstPause
		return nil
	}
	t := time.NewTimer(r.pause)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	r.pause = min(2*r.pause, lastPause)
	return nil
}

// lineage returns the paths from the top to path itself, without the root.
func lineage(path string) []string {
	if path == "/" {
		return nil
	}
	return append(lineage(pathpkg.Dir(path)), path)
}

// DeleteTree removes path and everything below it, deepest first, in commits that fit. It is not atomic: others see
// it shrink, and what they add meanwhile is removed too. It is idempotent and may be repeated after any error.
func DeleteTree(ctx context.Context, s Store, path string) error {
	if err := ValidatePath(path); err != nil {
		return err
	}
	var again repeated
	for {
		paths, err := descendants(ctx, s, path)
		if err != nil {
			return err
		}
		err = deleteAll(ctx, s, paths)
		if err == nil || (!errors.Is(err, ErrNotEmpty) && !errors.Is(err, ErrNotFound)) {
			return err
		}
		if err := again.wait(ctx, paths); err != nil {
			return err
		}
	}
}

func deleteAll(ctx context.Context, s Store, paths []string) error {
	for len(paths) > 0 {
		n := min(len(paths), s.Limits().MaxOps)
		ops := make([]Op, n)
		for i, p := range paths[:n] {
			ops[i] = Delete(p, AnyVersion)
		}
		if _, err := s.Commit(ctx, ops...); err != nil {
			return err
		}
		paths = paths[n:]
	}
	return nil
}

// descendants lists path and all below it, children before parents; nothing
// when path does not exist, and not the root.
func descendants(ctx context.Context, s Store, path string) ([]string, error) {
	names, err := s.Children(ctx, path)
	if errors.Is(err, ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, name := range names {
		below, err := descendants(ctx, s, pathpkg.Join(path, name))
		if err != nil {
			return nil, err
		}
		paths = append(paths, below...)
	}
	if path != "/" {
		paths = append(paths, path)
	}
	return paths, nil
}
