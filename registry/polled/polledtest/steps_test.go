package polledtest_test

import (
	"bytes"
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/conformance"
	"github.com/elasticron/elasticron/registry/polled"
	"github.com/elasticron/elasticron/registry/polled/polledtest"
	"github.com/elasticron/elasticron/registry/polled/polledtest/ram"
)

// audited returns what New says of a store.
func audited(t *testing.T, store polled.Store) string {
	t.Helper()
	return saying(t, func(tb testing.TB) {
		polledtest.New(tb, polled.Config{}, func(context.Context) (polled.Store, error) { return store, nil }).Close()
	})
}

// keeping is a store that keeps the bytes of who commits, or of who reads.
type keeping struct {
	polled.Store

	mu   sync.Mutex
	kept map[string][]byte
	read bool
}

func (k *keeping) Commit(ctx context.Context, session string, ops []registry.Op) (registry.Revision, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, op := range ops {
		if k.kept[op.Path] = op.Value; k.read {
			k.kept[op.Path] = bytes.Clone(op.Value)
		}
	}
	return k.Store.Commit(ctx, session, ops)
}

func (k *keeping) Read(ctx context.Context, paths, dirs []string) ([]polled.Node, error) {
	nodes, err := k.Store.Read(ctx, paths, dirs)
	k.mu.Lock()
	defer k.mu.Unlock()
	for i, n := range nodes {
		nodes[i].Value = k.kept[n.Path]
	}
	return nodes, err
}

// halved is a store whose Read, or whose Commit, is two steps.
type halved struct {
	polled.Store

	reads bool
}

func (h halved) Read(ctx context.Context, paths, dirs []string) ([]polled.Node, error) {
	if !h.reads {
		return h.Store.Read(ctx, paths, dirs)
	}
	nodes, err := h.Store.Read(ctx, paths, nil)
	if err != nil {
		return nil, err
	}
	<-time.After(100 * time.Microsecond)
	below, err := h.Store.Read(ctx, nil, dirs)
	return append(nodes, below...), err
}

func (h halved) Commit(ctx context.Context, session string, ops []registry.Op) (registry.Revision, error) {
	if h.reads || session == polled.NoSession {
		return h.Store.Commit(ctx, session, ops)
	}
	all, err := h.Sessions(ctx)
	if err != nil || !slices.ContainsFunc(all, func(s polled.Session) bool { return s.ID == session }) {
		return 0, registry.ErrSessionLost
	}
	<-time.After(100 * time.Microsecond)
	rev, err := h.Store.Commit(ctx, session, ops)
	if err == registry.ErrSessionLost { //nolint:errorlint // that is how it says it
		return h.Store.Commit(ctx, polled.NoSession, ops)
	}
	return rev, err
}

func TestStoresThatKeepOrAreTornAreFound(t *testing.T) {
	store := func() polled.Store { return (&ram.Database{}).Store() }
	require.Contains(t, audited(t, &keeping{Store: store(), kept: map[string][]byte{}}), "used them for something else")
	require.Contains(t, audited(t, &keeping{Store: store(), kept: map[string][]byte{}, read: true}), "used them for something else")
	require.Contains(t, audited(t, halved{store(), true}), "not as they were at one moment")
	require.Contains(t, audited(t, halved{store(), false}), "is left of a session that ended meanwhile")
	require.Empty(t, audited(t, halved{store(), true}.Store))
	require.Empty(t, audited(t, (&ram.Database{}).Bell()))
}

// A cracked bell tells otherwise than it should.
type cracked struct {
	ram.Bell

	tells func(polled.Step) []polled.Step
}

func (c cracked) Listen(ctx context.Context, heard func(polled.Step)) error {
	return c.Bell.Listen(ctx, func(step polled.Step) {
		for _, s := range c.tells(step) {
			heard(s)
		}
	})
}

func TestACrackedBellIsFound(t *testing.T) {
	one := func(change func(s *polled.Step)) func(polled.Step) []polled.Step {
		return func(s polled.Step) []polled.Step { change(&s); return []polled.Step{s} }
	}
	for says, tells := range map[string]func(polled.Step) []polled.Step{
		"want Unknown": one(func(s *polled.Step) { s.Unknown = false }),
		"a create and a Set rang with the paths [\"/polledtest/a\"]; want /polledtest too": one(func(s *polled.Step) {
			s.Paths = s.Paths[:min(1, len(s.Paths))]
		}),
		"an End rang with the paths []; want /polledtest/a too": func() func(polled.Step) []polled.Step {
			steps := 0
			return one(func(s *polled.Step) {
				if steps++; steps == 7 { // its begin is one
					s.Paths = nil
				}
			})
		}(),
		"and rang as": one(func(s *polled.Step) { s.Revision++ }),
		"a Delete has revision": func() func(polled.Step) []polled.Step { // it rings for what comes after
			steps := 0
			return func(s polled.Step) []polled.Step {
				if steps++; steps == 4 {
					return []polled.Step{s, s}
				}
				return []polled.Step{s}
			}
		}(),
	} {
		said := audited(t, cracked{(&ram.Database{}).Bell(), tells})
		require.Contains(t, said, "Listen: ")
		require.Contains(t, said, says)
	}
}

// The kit with a bell, which meets the faults that answers meet.
func TestConformanceWithABell(t *testing.T) {
	t.Parallel()
	conformance.Run(t, func(tb testing.TB) conformance.Harness {
		db := &ram.Database{}
		return polledtest.New(tb, polled.Config{}, func(context.Context) (polled.Store, error) { return db.Bell(), nil })
	})
}

// counted counts how often somebody listens.
type counted struct {
	ram.Bell

	listens chan struct{}
}

func (c counted) Listen(ctx context.Context, heard func(polled.Step)) error {
	c.listens <- struct{}{}
	return c.Bell.Listen(ctx, heard)
}

// What breaks a connection breaks the bell's, and so does a ring that was swallowed: what came later is no word of it.
func TestABellMeetsTheFaults(t *testing.T) {
	db, listens := &ram.Database{}, make(chan struct{}, 100)
	h := polledtest.New(t, polled.Config{}, func(context.Context) (polled.Store, error) { return counted{db.Bell(), listens}, nil })
	defer h.Close()
	<-listens // the audit
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	heard := func(why string) {
		select {
		case <-listens:
		case <-ctx.Done():
			require.Fail(t, "nobody listens "+why)
		}
	}
	watcher, writer := h.Registry(ctx, t), h.Registry(ctx, t)
	ses, err := watcher.Open(ctx)
	require.NoError(t, err)
	other, err := writer.Open(ctx)
	require.NoError(t, err)
	heard("at first")
	heard("at first, the other")
	w, err := ses.Watch(ctx)
	require.NoError(t, err)
	require.NoError(t, w.Add("/a", registry.Self))
	becomes := func(version registry.Version, write registry.Op) {
		_, err := other.Commit(ctx, write)
		require.NoError(t, err)
		for {
			events, err := w.Next(ctx)
			require.NoError(t, err)
			for _, e := range events {
				if e.Node.Exists() && e.Node.Version == version {
					return
				}
			}
		}
	}
	becomes(0, registry.Create("/a", nil))
	require.NoError(t, h.Faults().Drop(ses))
	heard("after Drop")
	becomes(1, registry.Set("/a", nil, 0))
	refused, err := h.Faults().Refuse(ses)
	require.NoError(t, err)
	refused()
	heard("after Refuse")
	becomes(2, registry.Set("/a", nil, 1))
	swallowed, err := h.Faults().Blackhole(ses, conformance.Answers)
	require.NoError(t, err)
	before := h.Faults().Hits(ses)
	_, err = other.Commit(ctx, registry.Set("/a", nil, 2))
	require.NoError(t, err)
	require.Eventually(t, func() bool { return h.Faults().Hits(ses) > before }, 10*time.Second, time.Millisecond)
	swallowed()
	heard("after what was swallowed")
	becomes(4, registry.Set("/a", nil, 3))
	require.NoError(t, h.Faults().RestartServer())
	heard("after a restart")
	heard("after a restart, the other")
}
