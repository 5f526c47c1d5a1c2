package registry

import (
	"context"
	"errors"
	pathpkg "path"
	"slices"
)

// EnsurePath makes the persistent node path and the parents it lacks, all with empty values, and leaves those that
// exist. It is idempotent and may be repeated after any error.
func EnsurePath(ctx context.Context, s Store, path string) error {
	if err := ValidatePath(path); err != nil {
		return err
	}
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
	}
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
	for {
		err := deleteOnce(ctx, s, path)
		if err == nil || (!errors.Is(err, ErrNotEmpty) && !errors.Is(err, ErrNotFound)) {
			return err
		}
	}
}

func deleteOnce(ctx context.Context, s Store, path string) error {
	paths, err := descendants(ctx, s, path)
	if err != nil {
		return err
	}
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
