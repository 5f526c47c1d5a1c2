package sqlite_test

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/core"
	sqlite "github.com/elasticron/elasticron/examples/adapter"
	"github.com/elasticron/elasticron/registry"
)

// A job with one item that stops after its first run.
func Example() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	dir, err := os.MkdirTemp("", "shop")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	reg, err := registry.Open(ctx, "sqlite:///shop?file="+url.QueryEscape(filepath.Join(dir, "registry.db")))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer reg.Close()
	var once sync.Once
	hello := core.JobFunc(func(_ context.Context, s core.Shard) error {
		once.Do(func() {
			fmt.Printf("%s: item %d of %d (%s)\n", s.Job, s.Item, s.Total, s.Param)
			stop()
		})
		return nil
	})
	err = core.Run(ctx, reg, hello, core.JobConfig{Name: "hello", Cron: "* * * * * ?", Shards: 1, ItemParams: map[int]string{0: "books"}})
	fmt.Println(err)
	// Output:
	// hello: item 0 of 1 (books)
	// <nil>
}

// openURL opens the file as a process of its own would, without a wire.
func openURL(t *testing.T, file string) registry.Session {
	t.Helper()
	reg, err := registry.Open(t.Context(), "sqlite:///shop/team?file="+url.QueryEscape(file))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, reg.Close()) })
	require.Equal(t, "shop/team", reg.Namespace())
	ses, err := reg.Open(t.Context())
	require.NoError(t, err)
	return ses
}

func TestTwoProcessesShareAFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a ?#%.db")
	a, b := openURL(t, file), openURL(t, file)
	_, err := a.Commit(t.Context(), registry.Create("/a", []byte("x")), registry.CreateEphemeral("/a/b", nil))
	require.NoError(t, err)
	names, err := b.Children(t.Context(), "/a")
	require.NoError(t, err)
	require.Equal(t, []string{"b"}, names)
	lock, err := a.Lock(t.Context(), "/lock", nil)
	require.NoError(t, err)
	_, err = b.TryLock(t.Context(), "/lock", nil)
	require.ErrorIs(t, err, registry.ErrHeld)
	require.NoError(t, a.Close(t.Context()))
	<-lock.Lost()
	next, err := b.Lock(t.Context(), "/lock", nil)
	require.NoError(t, err)
	require.Greater(t, next.Token(), lock.Token())
	require.NoError(t, next.Release(t.Context()))
	_, err = os.Stat(file)
	require.NoError(t, err)
}

// What another process writes rings no bell here: the next heartbeat sees it.
func TestSeesWhatOtherProcessesWrite(t *testing.T) {
	file := filepath.Join(t.TempDir(), "registry.db")
	ses := openURL(t, file)
	w, err := ses.Watch(t.Context())
	require.NoError(t, err)
	require.NoError(t, w.Add("/a", registry.Self))
	events, err := w.Next(t.Context())
	require.NoError(t, err)
	require.Len(t, events, 2) // its absence, Synced

	db, err := sql.Open("sqlite", file)
	require.NoError(t, err)
	defer db.Close()
	_, err = db.Exec("INSERT INTO sessions (id, timeout) VALUES ('other', 1); INSERT INTO ops VALUES (0, 'other', 2, '/a', '/', 'x', 0)")
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	events, err = w.Next(ctx)
	require.NoError(t, err)
	require.Equal(t, "x", string(events[0].Node.Value))

	// Nobody raises the counter of that session: it is ended.
	require.Eventually(t, func() bool {
		var left int
		require.NoError(t, db.QueryRow("SELECT count(*) FROM sessions WHERE id = 'other'").Scan(&left))
		return left == 0
	}, 20*time.Second, 10*time.Millisecond)
}

// Close with a context that has ended does not leave the nodes to expiry.
func TestCloseTriesWithoutTime(t *testing.T) {
	file := filepath.Join(t.TempDir(), "registry.db")
	a, b := openURL(t, file), openURL(t, file)
	_, err := a.Commit(t.Context(), registry.CreateEphemeral("/a", nil))
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, a.Close(ctx))
	nodes, err := b.Get(t.Context(), "/a")
	require.NoError(t, err)
	require.False(t, nodes[0].Exists())
}

// Certainly not applied is what the file's lock kept out, and nothing else.
func TestWhatALockedFileMeans(t *testing.T) {
	file := filepath.Join(t.TempDir(), "registry.db")
	db, err := sql.Open("sqlite", "file:"+file+"?_pragma=journal_mode(WAL)&_pragma=busy_timeout(1)")
	require.NoError(t, err)
	store, err := sqlite.NewStore(t.Context(), db)
	require.NoError(t, err)
	defer store.Close()
	require.NoError(t, store.Begin(t.Context(), "s", time.Second))
	writer, err := sql.Open("sqlite", "file:"+file+"?_txlock=immediate")
	require.NoError(t, err)
	defer writer.Close()
	tx, err := writer.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	ops := []registry.Op{registry.Create("/a", nil)}
	_, err = store.Commit(t.Context(), "s", ops)
	require.ErrorIs(t, err, registry.ErrUnavailable)
	require.NoError(t, tx.Rollback())
	_, err = store.Commit(t.Context(), "s", ops)
	require.NoError(t, err, "it had not been applied")
	_, err = db.Exec("DROP TABLE clock")
	require.NoError(t, err)
	_, err = store.Commit(t.Context(), "s", []registry.Op{registry.Create("/b", nil)})
	require.Error(t, err)
	require.NotErrorIs(t, err, registry.ErrUnavailable)
	require.NotErrorIs(t, err, registry.ErrDenied)
}

func TestReadOnlyIsDenied(t *testing.T) {
	file := filepath.Join(t.TempDir(), "registry.db")
	openURL(t, file)
	db, err := sql.Open("sqlite", "file:"+file+"?_pragma=query_only(1)")
	require.NoError(t, err)
	_, err = sqlite.NewStore(t.Context(), db)
	require.ErrorIs(t, err, registry.ErrDenied)
}

func TestOpenRefuses(t *testing.T) {
	missing := url.QueryEscape(filepath.Join(t.TempDir(), "no", "such", "folder.db"))
	for rawURL, want := range map[string]error{
		"sqlite:///shop":                                 registry.ErrInvalid,
		"sqlite:///?file=a.db":                           registry.ErrInvalid,
		"sqlite:///elasticron?file=a.db":                 registry.ErrInvalid,
		"sqlite://host/shop?file=a.db":                   registry.ErrInvalid,
		"sqlite:///shop?file=a.db&more=1":                registry.ErrInvalid,
		"sqlite:///shop?file=" + missing:                 registry.ErrUnavailable,
		"sqlite:///a//b?file=" + url.QueryEscape("a.db"): registry.ErrInvalid,
	} {
		_, err := registry.Open(t.Context(), rawURL)
		require.ErrorIs(t, err, want, rawURL)
	}
	require.NoFileExists(t, "a.db")
}
