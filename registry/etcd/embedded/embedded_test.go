package embedded_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/goleak"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/etcd"
	"github.com/elasticron/elasticron/registry/etcd/embedded"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

// fast keeps tests short.
func fast(c *embed.Config) { c.TickMs, c.ElectionMs, c.UnsafeNoFsync = 10, 100, true }

func start(t *testing.T, cfg embedded.Config) *embedded.Server {
	t.Helper()
	if cfg.Tune == nil {
		cfg.Tune = fast
	}
	s, err := embedded.Start(within(t, 20*time.Second), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func open(t *testing.T, reg registry.Registry) registry.Session {
	t.Helper()
	s, err := reg.Open(within(t, 10*time.Second))
	require.NoError(t, err)
	return s
}

func TestCloseIsFastWithClientsConnected(t *testing.T) {
	srv := start(t, embedded.Config{})
	reg, err := srv.Registry(within(t, 10*time.Second), etcd.Config{Namespace: "shop"})
	require.NoError(t, err)
	defer reg.Close()
	s := open(t, reg)
	w, err := s.Watch(within(t, time.Second))
	require.NoError(t, err)
	require.NoError(t, w.Add("/", registry.Children))
	_, err = w.Next(within(t, 10*time.Second))
	require.NoError(t, err)

	began := time.Now()
	require.NoError(t, srv.Close())
	require.Less(t, time.Since(began), time.Second)
	require.NoError(t, srv.Close(), "Close is idempotent")
	require.NoError(t, s.Err(), "connection loss is not session loss")
}

func TestLargeCommits(t *testing.T) {
	srv := start(t, embedded.Config{})
	want := registry.Limits{MaxOps: 2000, MaxBytes: 8 << 20, MaxValue: 4 << 20}
	inside, err := srv.Registry(within(t, 10*time.Second), etcd.Config{Namespace: "shop"})
	require.NoError(t, err)
	defer inside.Close()
	outside, err := registry.Open(within(t, 10*time.Second), "etcd://"+srv.Endpoint()+"/shop?max-ops=2000&max-bytes=8388608")
	require.NoError(t, err)
	defer outside.Close()
	for name, reg := range map[string]registry.Registry{"inside": inside, "outside": outside} {
		s := open(t, reg)
		require.Equal(t, want, s.Limits(), name)
		ctx := within(t, 60*time.Second)
		dirs := make([]registry.Op, want.MaxOps)
		leaves := make([]registry.Op, want.MaxOps)
		share := bytes.Repeat([]byte("x"), want.MaxBytes/want.MaxOps-64)
		for i := range dirs {
			dir := fmt.Sprintf("/%s-%d", name, i)
			dirs[i], leaves[i] = registry.Create(dir, nil), registry.Create(dir+"/leaf", share)
		}
		for _, ops := range [][]registry.Op{dirs, leaves} {
			_, err = s.Commit(ctx, ops...)
			require.NoError(t, err, name)
		}
		_, err = s.Commit(ctx, registry.Create("/"+name+"-large", make([]byte, want.MaxValue)))
		require.NoError(t, err, name)
		_, err = s.Commit(ctx, slices.Concat(leaves, []registry.Op{registry.Create("/one-more", nil)})...)
		require.ErrorIs(t, err, registry.ErrInvalid, name)
	}
}

func TestDataOutlivesTheServer(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made", "when", "missing")
	var created registry.Revision
	for life := range 3 {
		srv := start(t, embedded.Config{Dir: dir})
		reg, err := srv.Registry(within(t, 10*time.Second), etcd.Config{Namespace: "shop"})
		require.NoError(t, err)
		s := open(t, reg)
		if life == 0 {
			created, err = s.Commit(within(t, 10*time.Second), registry.Create("/kept", []byte("x")))
			require.NoError(t, err)
		}
		nodes, err := s.Get(within(t, 10*time.Second), "/kept")
		require.NoError(t, err)
		require.Equal(t, created, nodes[0].Created, "life %d", life)
		require.NoError(t, reg.Close())
		require.NoError(t, srv.Close())
	}
}

func TestFolderInUse(t *testing.T) {
	dir := t.TempDir()
	first := start(t, embedded.Config{Dir: dir})
	_, err := embedded.Start(within(t, 10*time.Second), embedded.Config{Dir: dir, Tune: fast})
	// Finding C 19: it says how to share the folder.
	require.EqualError(t, err, "embedded: invalid request: folder "+dir+" is in use by the server at "+first.Endpoint()+"; open etcd://"+first.Endpoint()+
		"/namespace to share it (its setting addr= keeps the address over restarts), or choose another folder")
	require.ErrorIs(t, err, registry.ErrInvalid)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "elasticron.lock"), nil, 0o600)) // as while the first one starts
	_, err = embedded.Start(within(t, 10*time.Second), embedded.Config{Dir: dir, Tune: fast})
	require.ErrorContains(t, err, "is in use by another server; give that one an address (embedded:///folder?namespace=shop&addr=127.0.0.1:2379) and open etcd://127.0.0.1:2379/shop here, or")
	require.NoError(t, first.Close())
	require.NoError(t, start(t, embedded.Config{Dir: dir}).Close())
}

func TestTemporaryFolderIsRemoved(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	srv := start(t, embedded.Config{})
	found, err := os.ReadDir(os.TempDir())
	require.NoError(t, err)
	require.Len(t, found, 1)
	require.NoError(t, srv.Close())
	found, err = os.ReadDir(os.TempDir())
	require.NoError(t, err)
	require.Empty(t, found)
}

func TestURL(t *testing.T) {
	dir := t.TempDir()
	for _, raw := range []string{"embedded://" + dir + "?namespace=shop&session-timeout=3s", "embedded:///?namespace=shop", "embedded://?namespace=shop"} {
		reg, err := registry.Open(within(t, 20*time.Second), raw)
		require.NoError(t, err, raw)
		require.Equal(t, "shop", reg.Namespace())
		s := open(t, reg)
		_, err = s.Commit(within(t, 10*time.Second), registry.Create("/x", nil))
		require.NoError(t, err)
		began := time.Now()
		require.NoError(t, reg.Close(), "the server closes with the registry")
		require.NoError(t, reg.Close())
		require.Less(t, time.Since(began), 2*time.Second)
	}
	found, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.NotEmpty(t, found)
}

func TestBadURL(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for raw, want := range map[string]string{
		"embedded://data/etcd?namespace=shop":          `embedded: invalid request: the folder "data/etcd" is relative; write it from the root: embedded:///var/lib/…?namespace=…`,
		"embedded:data?namespace=shop":                 `embedded: invalid request: the folder "data" is relative; write it from the root: embedded:///var/lib/…?namespace=…`,
		"embedded:///":                                 `embedded: invalid request: no namespace; name one: embedded:///folder?namespace=shop`,
		"embedded:///?namespace=elasticron":            `etcd: invalid request: namespace "elasticron" is reserved for Elasticron's own state; choose another name`,
		"embedded:///?namespace=a&x=1":                 `embedded: invalid request: unknown setting "x"; known: addr namespace session-timeout`,
		"embedded:///?namespace=a&addr=x":              `embedded: invalid request: address "x" is not host:port`,
		"embedded:///?namespace=a&session-timeout=1ms": `etcd: invalid request: session timeout 1ms is too short: a pause of the process would end the session; give at least 500ms`, // finding C 21
		"embedded:///?namespace=a&session-timeout=6":   `embedded: invalid request: setting session-timeout="6": not a positive duration such as 6s`,
		"embedded://" + file + "?namespace=a":          `embedded: invalid request: folder ` + file + `: mkdir ` + file + `: not a directory`,
	} {
		_, err := registry.Open(within(t, 20*time.Second), raw)
		require.EqualError(t, err, want, raw)
		require.ErrorIs(t, err, registry.ErrInvalid, raw)
	}
}

func TestAddressInUse(t *testing.T) {
	first := start(t, embedded.Config{})
	_, err := embedded.Start(within(t, 20*time.Second), embedded.Config{Addr: first.Endpoint(), Tune: fast})
	require.ErrorIs(t, err, registry.ErrUnavailable)
	require.ErrorContains(t, err, "address already in use")
}
