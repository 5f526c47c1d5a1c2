package registry_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestValidatePath(t *testing.T) {
	for _, good := range []string{"/", "/a", "/a/b", "/a/...", "/10.0.0.1@-@7", "/北京/é", "/" + strings.Repeat("x", 255)} {
		require.NoError(t, registry.ValidatePath(good), good)
	}
	for bad, says := range map[string]string{
		"": "does not start with /", "a": "does not start with /", "/a/": "that is empty", "//a": "that is empty",
		"/a/./b": `"."`, "/..": `".."`, "/a\x00": "U+0000", "/\u009f": "U+009F", "/\uf8ff": "U+F8FF", "/\ufff0": "U+FFF0",
		"/😀": "U+1F600", "/\xff": "not UTF-8", "/" + strings.Repeat("x", 256): "256 bytes", strings.Repeat("/x", 1025): "2050 bytes",
	} {
		err := registry.ValidatePath(bad)
		require.ErrorIs(t, err, registry.ErrInvalid, bad)
		require.ErrorContains(t, err, says)
		require.NotContains(t, err.Error(), "\n")
	}
}

func TestLimitsValidate(t *testing.T) {
	l := registry.Limits{MaxOps: 3, MaxBytes: 30, MaxValue: 20}
	require.NoError(t, l.Validate([]registry.Op{registry.Check("/a", registry.AnyVersion), registry.Set("/b", nil, 0), registry.Delete("/c", 3)}))
	for says, ops := range map[string][]registry.Op{
		"no operations":     nil,
		"4 operations":      {registry.Check("/a", 0), registry.Check("/b", 0), registry.Check("/c", 0), registry.Check("/d", 0)},
		"occurs twice":      {registry.Check("/a", 0), registry.Delete("/a", 0)},
		"the root":          {registry.Set("/", nil, 0)},
		"21 bytes":          {registry.Create("/a", make([]byte, 21))},
		"31 bytes":          {registry.Create("/aa", make([]byte, 14)), registry.CreateEphemeral("/bb", make([]byte, 11))},
		"version -2":        {registry.Check("/a", -2)},
		"unknown kind":      {{Path: "/a"}},
		"does not start":    {registry.Create("a", nil)},
		"operation 1: inva": {registry.Check("/a", 0), registry.Create("b", nil)},
	} {
		err := l.Validate(ops)
		require.ErrorIs(t, err, registry.ErrInvalid, says)
		require.ErrorContains(t, err, says)
	}
}

func TestOpenNamesWhatIsWrong(t *testing.T) {
	ctx := t.Context()
	_, err := registry.Open(ctx, "consul://h:1/shop")
	require.EqualError(t, err, `registry: unknown scheme "consul" (forgotten import?); registered: [memory test]`)
	_, err = registry.Open(ctx, "memory://me:secret@name/shop")
	require.ErrorContains(t, err, "adapter's configuration, a file or the environment")
	require.NotContains(t, err.Error(), "secret")
	_, err = registry.Open(ctx, "memory://me:sec ret@%zz/shop")
	require.ErrorIs(t, err, registry.ErrInvalid)
	require.NotContains(t, err.Error(), "ret")
	_, err = registry.Open(ctx, "no scheme at all")
	require.ErrorContains(t, err, `unknown scheme ""`)
	for _, text := range []string{"memory://here/shop ", "\nmemory://here/shop", "memory：//here/shop", "memory://here：1/shop"} {
		_, err = registry.Open(ctx, text)
		require.EqualError(t, err, "registry: invalid request: not a URL, want scheme://host:port/namespace, no space and no ：")
	}
	reg, err := registry.Open(ctx, "memory://here/team/shop")
	require.NoError(t, err)
	require.Equal(t, "team/shop", reg.Namespace())
	require.NoError(t, reg.Close())
	_, err = reg.Open(ctx)
	require.ErrorIs(t, err, registry.ErrClosed)
}

func init() {
	registry.Register("test", func(context.Context, *url.URL) (registry.Registry, error) { return nil, errors.New("not really") })
}

func TestASchemeIsRegisteredOnce(t *testing.T) {
	require.PanicsWithValue(t, "registry: scheme test is registered twice", func() { registry.Register("test", nil) })
}

func TestACommitErrorSaysWhichOperation(t *testing.T) {
	err := error(&registry.CommitError{Index: 2, Op: registry.Set("/a", nil, 7), Err: registry.ErrVersion})
	require.EqualError(t, err, "commit: operation 2 (set /a): node has another version")
	require.ErrorIs(t, err, registry.ErrVersion)
}

func TestEnsurePathAndDeleteTree(t *testing.T) {
	reg := memory.NewServer(memory.Config{}).Registry("shop")
	defer reg.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	ses, err := reg.Open(ctx)
	require.NoError(t, err)
	require.NoError(t, registry.EnsurePath(ctx, ses, "/a/b/c"))
	require.NoError(t, registry.EnsurePath(ctx, ses, "/a/b/c"), "again")
	require.NoError(t, registry.EnsurePath(ctx, ses, "/"))
	require.ErrorIs(t, registry.EnsurePath(ctx, ses, "a"), registry.ErrInvalid)
	for i := range 100 { // more than one commit holds
		require.NoError(t, registry.EnsurePath(ctx, ses, fmt.Sprintf("/a/b/c/%d/x", i)))
	}
	require.NoError(t, registry.DeleteTree(ctx, ses, "/a/b"))
	require.NoError(t, registry.DeleteTree(ctx, ses, "/a/b"), "again")
	names, err := ses.Children(ctx, "/a")
	require.NoError(t, err)
	require.Empty(t, names)
	require.NoError(t, ses.Close(ctx))
}

// Deep is a path with more segments than one portable commit has operations.
func TestEnsurePathOfAHundredLevels(t *testing.T) {
	reg := memory.NewServer(memory.Config{}).Registry("shop")
	defer reg.Close()
	ses, err := reg.Open(t.Context())
	require.NoError(t, err)
	deep := strings.Repeat("/d", 100)
	require.NoError(t, registry.EnsurePath(t.Context(), ses, deep))
	nodes, err := ses.Get(t.Context(), deep)
	require.NoError(t, err)
	require.True(t, nodes[0].Exists())
	require.NoError(t, registry.DeleteTree(t.Context(), ses, "/d"))
	require.NoError(t, ses.Close(t.Context()))
}

// A contrary store shows nothing of what it has, and refuses what goes by that, as a server does that lacks a change.
type contrary struct {
	registry.Store

	commits int
	until   int // so many commits
	refusal error
	name    string // of a child that it shows
}

func (c *contrary) Limits() registry.Limits { return registry.PortableLimits() }

func (c *contrary) Get(_ context.Context, paths ...string) ([]registry.Node, error) {
	nodes := make([]registry.Node, len(paths))
	for i, p := range paths {
		nodes[i].Path = p
		if c.commits >= c.until {
			nodes[i].Created = 1
		}
	}
	return nodes, nil
}

func (c *contrary) Children(_ context.Context, path string) ([]string, error) {
	if c.commits >= c.until {
		return nil, registry.ErrNotFound
	}
	if path == "/a" && c.name != "" {
		return []string{c.name}, nil
	}
	return nil, nil
}

func (c *contrary) Commit(_ context.Context, ops ...registry.Op) (registry.Revision, error) {
	c.commits++
	return 0, &registry.CommitError{Op: ops[0], Err: c.refusal}
}

// Such a server is not asked without a pause, and no longer than the context lasts.
func TestAContraryStoreIsAskedRarely(t *testing.T) {
	for name, c := range map[string]struct {
		refusal error
		do      func(context.Context, registry.Store, string) error
	}{
		"it shows no parent":    {registry.ErrExists, registry.EnsurePath},
		"it shows one":          {registry.ErrNoParent, registry.EnsurePath},
		"it shows no child":     {registry.ErrNotEmpty, registry.DeleteTree},
		"it shows what is gone": {registry.ErrNotFound, registry.DeleteTree},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				s := &contrary{until: 1 << 30, refusal: c.refusal, name: "b"}
				require.ErrorIs(t, c.do(ctx, s, "/a"), context.DeadlineExceeded)
				require.Less(t, s.commits, 80)
				begun := time.Now()
				s = &contrary{until: 3, refusal: c.refusal, name: "b"}
				require.NoError(t, c.do(t.Context(), s, "/a"))
				require.Less(t, time.Since(begun), 200*time.Millisecond, "what is over soon is not waited for")
			})
		})
	}
}
