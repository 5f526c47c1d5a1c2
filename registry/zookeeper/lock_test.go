package zookeeper

import (
	"context"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/zookeeper/internal/link"
)

const id = "_c_8b1c9c3a-5d1e-4b52-9c0b-0f4b3e3f2a11-"

func TestPlace(t *testing.T) {
	var c curator
	for name, want := range map[string]int64{
		id + "latch-0000000000": 0, id + "latch-0000000017": 17, id + "latch-2147483646": 2147483646,
		"latch-0000000003": 3, "latch-latch-0000000004": 4, "latch-0000000005-latch-0000000006": 6,
	} {
		place, ok, err := c.Place(name)
		require.NoError(t, err, name)
		require.True(t, ok, name)
		require.Equal(t, want, place, name)
	}
	for _, name := range []string{
		"", "x", "latch-", "latch-x", id + "lock-0000000001", "latch-17", "latch-000000017", "latch-00000000017", "latch-+000000017",
		"latch-2147483648", "latch-9999999999", "latch-20240101120000", "latch-0000000001-read", "latch-0x00000001", "latch-1_00000000",
	} {
		_, ok, err := c.Place(name)
		require.NoError(t, err, name)
		require.False(t, ok, name)
	}
	for _, name := range []string{"2147483647", "-000000001", "-2147483648", "-2147483647"} {
		_, _, err := c.Place(id + "latch-" + name)
		require.ErrorContains(t, err, "used up its sequence numbers", name)
		require.ErrorContains(t, err, "delete the directory", name)
		require.ErrorContains(t, err, name)
	}
}

// A createLink answers every create alike, and remembers the last.
type createLink struct {
	*fakeLink
	settled chan struct{}

	sent   *zk.CreateRequest
	answer string
	err    error
}

func (l *createLink) MultiAlone(_ context.Context, requests ...any) (link.Written, <-chan struct{}, error) {
	l.sent, _ = requests[0].(*zk.CreateRequest)
	return link.Written{Results: []zk.MultiResponse{{String: l.answer, Error: l.err}}}, l.settled, l.err
}

func creating(t *testing.T, cfg Config, answer string, err error) (*curator, *createLink) {
	t.Helper()
	s, _ := answering(t, cfg, nil, nil)
	l := &createLink{fakeLink: newFake(), answer: answer, err: err, settled: make(chan struct{})}
	close(l.settled)
	base := s.link
	s.link = l
	t.Cleanup(func() { s.link = base })
	return &curator{s: s}, l
}

func TestJoin(t *testing.T) {
	for name, tc := range map[string]struct {
		cfg  Config
		root string
		acl  []zk.ACL
	}{
		"Plain": {Config{}, "", zk.WorldACL(zk.PermAll)}, "Chroot": {Config{Chroot: "/x/y"}, "/x/y", zk.WorldACL(zk.PermAll)},
		"Login": {Config{Username: "eva", Password: "s3cret"}, "", []zk.ACL{{Perms: 31, Scheme: "auth"}}},
	} {
		t.Run(name, func(t *testing.T) {
			c, l := creating(t, tc.cfg, tc.root+"/a/"+id+"latch-0000000007", nil)
			path, err := c.Join(t.Context(), "/a/"+id+"latch-", nil)
			require.NoError(t, err)
			require.Equal(t, "/a/"+id+"latch-0000000007", path)
			require.Equal(t, &zk.CreateRequest{Path: tc.root + "/a/" + id + "latch-", Data: []byte{}, Acl: tc.acl, Flags: 3}, l.sent)
		})
	}
}

func TestJoinFails(t *testing.T) {
	for _, tc := range []struct{ answer, want error }{
		{zk.ErrNoNode, registry.ErrNoParent},
		{zk.ErrNoChildrenForEphemerals, registry.ErrEphemeralParent},
		{zk.ErrNoAuth, registry.ErrDenied},
		{registry.ErrUncertain, registry.ErrUncertain},
		{registry.ErrSessionLost, registry.ErrSessionLost},
		{zk.ErrUnknown, registry.ErrUnavailable},
	} {
		c, _ := creating(t, Config{}, "", tc.answer)
		path, err := c.Join(t.Context(), "/a/"+id+"latch-", nil)
		require.ErrorIs(t, err, tc.want)
		require.Empty(t, path)
		require.True(t, c.Settle(t.Context()))
	}
}

// A missingDirLink has no directory: it takes nodes with their directory only, and answers these two by err.
type missingDirLink struct {
	*createLink
	both []any
}

func (l *missingDirLink) MultiAlone(ctx context.Context, requests ...any) (link.Written, <-chan struct{}, error) {
	if len(requests) == 1 {
		return link.Written{Results: []zk.MultiResponse{{Error: zk.ErrNoNode}}}, closed, zk.ErrNoNode
	}
	l.both = requests
	w, settled, err := l.createLink.MultiAlone(ctx, requests[1])
	return link.Written{Results: append([]zk.MultiResponse{{Error: err}}, w.Results...)}, settled, err
}

var closed = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

// Where the directory is missing it is made with the node, in one request.
func TestJoinMakesTheDirectory(t *testing.T) {
	for _, tc := range []struct{ answer, want error }{
		{nil, nil},
		{zk.ErrNodeExists, registry.ErrNoParent}, // somebody else has made it; there was none before
		{zk.ErrNoNode, registry.ErrNoParent},     // nor is there what it would be in
		{zk.ErrNoAuth, registry.ErrDenied},
		{registry.ErrUncertain, registry.ErrUncertain},
	} {
		c, made := creating(t, Config{}, "/a/"+id+"latch-0000000007", tc.answer)
		made.settled = make(chan struct{})
		l := &missingDirLink{createLink: made}
		c.s.link = l
		path, err := c.Join(t.Context(), "/a/"+id+"latch-", []byte("x"))
		acl := zk.WorldACL(zk.PermAll)
		require.Equal(t, []any{
			&zk.CreateRequest{Path: "/a", Data: []byte{}, Acl: acl},
			&zk.CreateRequest{Path: "/a/" + id + "latch-", Data: []byte("x"), Acl: acl, Flags: 3},
		}, l.both)
		if tc.want == nil {
			require.NoError(t, err)
			require.Equal(t, "/a/"+id+"latch-0000000007", path)
			continue
		}
		require.ErrorIs(t, err, tc.want)
		require.Empty(t, path)
		ended, end := context.WithCancel(t.Context())
		end()
		require.False(t, c.Settle(ended), "the second create may still be with the client")
		close(made.settled)
		require.True(t, c.Settle(t.Context()))
	}
}

// A create that is still with the client may come to be sent after a Sync.
func TestSettleWaitsForTheClient(t *testing.T) {
	c, l := creating(t, Config{}, "", registry.ErrUncertain)
	l.settled = make(chan struct{})
	_, err := c.Join(t.Context(), "/a/"+id+"latch-", nil)
	require.ErrorIs(t, err, registry.ErrUncertain)
	ended, end := context.WithCancel(t.Context())
	end()
	require.False(t, c.Settle(ended))
	close(l.settled)
	require.True(t, c.Settle(t.Context()))
}

func TestJoinInvalid(t *testing.T) {
	c, l := creating(t, Config{}, "", nil)
	_, err := c.Join(t.Context(), "/zookeeper/"+id+"latch-", nil)
	require.ErrorIs(t, err, registry.ErrInvalid)
	_, err = c.Join(t.Context(), "/a/"+id+"latch-", make([]byte, c.s.Limits().MaxValue+1))
	require.ErrorIs(t, err, registry.ErrInvalid)
	ended, end := context.WithCancel(t.Context())
	end()
	_, err = c.Join(ended, "/a/"+id+"latch-", nil)
	require.Equal(t, context.Canceled, err)
	require.Nil(t, l.sent)
	require.True(t, c.Settle(t.Context()))
}
