package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/zookeeper/internal/link"
)

// A multiLink answers every multi alike, and remembers the last.
type multiLink struct {
	*fakeLink
	sent    []any
	results []zk.MultiResponse
	err     error
}

func (l *multiLink) Multi(_ context.Context, ops ...any) (link.Written, error) {
	l.sent = ops
	return link.Written{Results: l.results, Zxid: 42}, l.err
}

func answering(t *testing.T, cfg Config, results []zk.MultiResponse, err error) (*session, *multiLink) {
	t.Helper()
	l := &multiLink{fakeLink: newFake(), results: results, err: err}
	cfg.Servers, cfg.Namespace = []string{"a"}, "shop"
	cfg, invalid := cfg.complete()
	require.NoError(t, invalid)
	s := newSession(newRegistry(cfg))
	s.begin(l.Lifetime, l)
	t.Cleanup(func() { require.NoError(t, s.Close(context.Background())) })
	return s, l
}

func TestCommitRequests(t *testing.T) {
	world, auth := zk.WorldACL(31), []zk.ACL{{Perms: 31, Scheme: "auth"}}
	for name, tc := range map[string]struct {
		cfg  Config
		root string
		acl  []zk.ACL
	}{
		"Plain": {Config{}, "", world}, "Chroot": {Config{Chroot: "/x/y"}, "/x/y", world},
		"Login": {Config{Username: "eva", Password: "s3cret"}, "", auth},
	} {
		t.Run(name, func(t *testing.T) {
			s, l := answering(t, tc.cfg, make([]zk.MultiResponse, 5), nil)
			rev, err := s.Commit(t.Context(), registry.Check("/a", registry.AnyVersion), registry.Set("/b", nil, 3),
				registry.Delete("/c", 0), registry.Create("/d", nil), registry.CreateEphemeral("/e", []byte("x")))
			require.NoError(t, err)
			require.Equal(t, registry.Revision(42), rev)
			require.Empty(t, cmp.Diff([]any{
				&zk.CheckVersionRequest{Path: tc.root + "/a", Version: -1},
				&zk.SetDataRequest{Path: tc.root + "/b", Data: []byte{}, Version: 3},
				&zk.DeleteRequest{Path: tc.root + "/c"},
				&zk.CreateRequest{Path: tc.root + "/d", Data: []byte{}, Acl: tc.acl},
				&zk.CreateRequest{Path: tc.root + "/e", Data: []byte("x"), Acl: tc.acl, Flags: zk.FlagEphemeral},
			}, l.sent))
		})
	}
}

// The refusal of a single operation is the commit's.
func TestCommitOfOne(t *testing.T) {
	for _, tc := range []struct {
		op   registry.Op
		sent any
		err  error
		want error
	}{
		{registry.Create("/d", nil), &zk.CreateRequest{Path: "/d", Data: []byte{}, Acl: zk.WorldACL(31)}, zk.ErrNoNode, registry.ErrNoParent},
		{registry.CreateEphemeral("/d", nil), &zk.CreateRequest{Path: "/d", Data: []byte{}, Acl: zk.WorldACL(31), Flags: zk.FlagEphemeral}, zk.ErrNodeExists, registry.ErrExists},
		{registry.Set("/d", []byte("x"), 7), &zk.SetDataRequest{Path: "/d", Data: []byte("x"), Version: 7}, zk.ErrNoNode, registry.ErrNotFound},
		{registry.Delete("/d", registry.AnyVersion), &zk.DeleteRequest{Path: "/d", Version: -1}, zk.ErrNotEmpty, registry.ErrNotEmpty},
	} {
		s, l := answering(t, Config{}, []zk.MultiResponse{{}}, nil)
		rev, err := s.Commit(t.Context(), tc.op)
		require.NoError(t, err)
		require.Equal(t, registry.Revision(42), rev, "whatever the operation")
		require.Empty(t, cmp.Diff([]any{tc.sent}, l.sent))
		l.results, l.err = []zk.MultiResponse{{Error: tc.err}}, tc.err
		_, err = s.Commit(t.Context(), tc.op)
		failed, ok := errors.AsType[*registry.CommitError](err)
		require.True(t, ok, err)
		require.Zero(t, failed.Index)
		require.ErrorIs(t, err, tc.want)
	}
}

// What is sent is the session's own: its caller may have left before.
func TestCommitCopiesValues(t *testing.T) {
	s, l := answering(t, Config{}, nil, registry.ErrUncertain)
	value := []byte("x")
	_, err := s.Commit(t.Context(), registry.Create("/d", value), registry.Set("/e", value, 0))
	require.ErrorIs(t, err, registry.ErrUncertain)
	value[0] = 'y'
	require.Equal(t, "x", string(l.sent[0].(*zk.CreateRequest).Data))
	require.Equal(t, "x", string(l.sent[1].(*zk.SetDataRequest).Data))
}

// A version is never truncated: 2³² would be 0, and 2³²-1 would match any.
func TestVersionsThatDoNotFit(t *testing.T) {
	for v, want := range map[registry.Version]int32{
		-1: -1, 0: 0, math.MaxInt32: math.MaxInt32, math.MaxInt32 + 1: -2, 1 << 32: -2, 1<<32 - 1: -2, math.MaxInt64: -2,
	} {
		require.Equal(t, want, version(v), v)
	}
}

func TestCommitRefusals(t *testing.T) {
	ops := []registry.Op{registry.Check("/a", 0), registry.Create("/b", []byte("x")), registry.Delete("/c", 0)}
	after := errors.New("unknown error: -2")
	for _, tc := range []struct {
		index int
		err   error
		want  error
	}{
		{0, zk.ErrNoNode, registry.ErrNotFound}, {1, zk.ErrNoNode, registry.ErrNoParent}, {2, zk.ErrNoNode, registry.ErrNotFound},
		{1, zk.ErrNodeExists, registry.ErrExists}, {0, zk.ErrBadVersion, registry.ErrVersion}, {2, zk.ErrNotEmpty, registry.ErrNotEmpty},
		{1, zk.ErrNoChildrenForEphemerals, registry.ErrEphemeralParent},
		{1, zk.ErrNoAuth, registry.ErrDenied}, {1, zk.ErrInvalidACL, registry.ErrDenied},
	} {
		t.Run(fmt.Sprint(tc.index, tc.err), func(t *testing.T) {
			results := []zk.MultiResponse{{Error: nil}, {Error: nil}, {Error: nil}}
			results[tc.index].Error = tc.err
			for i := tc.index + 1; i < len(results); i++ {
				results[i].Error = after
			}
			s, _ := answering(t, Config{}, results, tc.err)
			_, err := s.Commit(t.Context(), ops...)
			failed, ok := errors.AsType[*registry.CommitError](err)
			require.True(t, ok, err)
			require.Equal(t, tc.index, failed.Index)
			require.Equal(t, ops[tc.index], failed.Op)
			require.ErrorIs(t, err, tc.want)
			if errors.Is(tc.want, registry.ErrDenied) {
				require.ErrorIs(t, err, tc.err)
				require.ErrorContains(t, err, "a client without a login")
			}
		})
	}
}

func TestCommitFailures(t *testing.T) {
	uncertain := fmt.Errorf("zookeeper: %w: %w", registry.ErrUncertain, registry.ErrSessionLost)
	quota := errors.New("unknown error: -125")
	for name, tc := range map[string]struct {
		results []zk.MultiResponse
		err     error
		want    error
	}{
		"Uncertain": {nil, uncertain, uncertain},
		"Quota":     {[]zk.MultiResponse{{Error: quota}}, quota, registry.ErrUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := answering(t, Config{}, tc.results, tc.err)
			_, err := s.Commit(t.Context(), registry.Create("/b", nil))
			require.ErrorIs(t, err, tc.want)
			require.ErrorIs(t, err, tc.err)
			_, ok := errors.AsType[*registry.CommitError](err)
			require.False(t, ok)
		})
	}
}

func TestCommitIsRefusedBeforeAnythingIsSent(t *testing.T) {
	s, l := answering(t, Config{}, []zk.MultiResponse{{}}, nil)
	for _, ops := range [][]registry.Op{
		nil, {registry.Create("/", nil)}, {registry.Create("/zookeeper/x", nil)}, {registry.Create("/a", nil), registry.Delete("/zookeeper", -1)},
		{registry.Create("/a", make([]byte, 256<<10+1))},
	} {
		_, err := s.Commit(t.Context(), ops...)
		require.ErrorIs(t, err, registry.ErrInvalid)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.Commit(ended, registry.Create("/a", nil))
	require.Equal(t, context.Canceled, err)
	require.Nil(t, l.sent)

	s, l = answering(t, Config{Chroot: "/x"}, []zk.MultiResponse{{}}, nil)
	_, err = s.Commit(t.Context(), registry.Create("/zookeeper", nil))
	require.NoError(t, err, "it is nothing special below a chroot")
	require.Len(t, l.sent, 1)
}

func TestNodeOfAStat(t *testing.T) {
	s, _ := answering(t, Config{}, nil, nil)
	for name, tc := range map[string]struct {
		owner            int64
		ephemeral, owned bool
	}{
		"Persistent": {0, false, false}, "Own": {7, true, true}, "Other": {8, true, false},
		"Container": {math.MinInt64, false, false}, "TTL": {-0x00ffffffffffff00, false, false}, "HighServer": {-0x0200000000000000, true, false},
	} {
		stat := &zk.Stat{Czxid: 3, Mzxid: 5, Version: 2, EphemeralOwner: tc.owner}
		want := registry.Node{Path: "/a", Value: []byte("x"), Version: 2, Created: 3, Modified: 5, Ephemeral: tc.ephemeral, Owned: tc.owned}
		require.Equal(t, want, s.node("/a", []byte("x"), stat), name)
	}
	require.EqualValues(t, 7, s.number)
}

func TestSyncAsksAgain(t *testing.T) {
	s, l := answering(t, Config{Chroot: "/x"}, nil, zk.ErrNoAuth)
	require.NoError(t, s.Sync(t.Context()), "a refusal has passed the quorum too")
	require.Equal(t, []any{&zk.CheckVersionRequest{Path: "/x", Version: -1}}, l.sent)

	s, _ = answering(t, Config{}, nil, registry.ErrUncertain)
	ctx, cancel := context.WithTimeout(t.Context(), 5*syncPause)
	defer cancel()
	err := s.Sync(ctx)
	require.ErrorIs(t, err, registry.ErrUnavailable)
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestPipeline(t *testing.T) {
	bad := errors.New("bad")
	for n := range 200 {
		for _, few := range []int{1, 7} {
			from := n / 5
			step := func() int { return few }
			done := make([]bool, n)
			require.NoError(t, pipeline(t.Context(), maxReads, from, n, step, func(_ context.Context, i, to int) error {
				for ; i < to; i++ {
					done[i] = true
				}
				return nil
			}))
			require.NotContains(t, done[from:], false)
			require.NotContains(t, done[:from], true)
			if n > 0 {
				err := pipeline(t.Context(), maxReads, from, n, step, func(_ context.Context, i, to int) error {
					if i <= n/2 && n/2 < to {
						return bad
					}
					return nil
				})
				require.Equal(t, bad, err)
			}
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	err := pipeline(ctx, maxReads, 0, 1000, func() int { return 1 }, func(context.Context, int, int) error { cancel(); return nil })
	require.ErrorIs(t, err, registry.ErrUnavailable)
	require.ErrorIs(t, err, context.Canceled)
}
