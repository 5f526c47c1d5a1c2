package etcd_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"github.com/elasticron/elasticron/internal/testbed"
	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/etcd"
)

// startAuth starts a cluster that wants a login. eva may use everything below
// /shop, and nothing else.
func startAuth(t *testing.T) *testbed.Etcd {
	t.Helper()
	bed := testbed.StartEtcd(t, testbed.Options{Tune: func(c *embed.Config) {
		c.AuthTokenTTL = 1 // seconds: tokens run out during the tests
		c.BcryptCost = 4
	}})
	enableAuth(t, bed)
	return bed
}

func enableAuth(t *testing.T, bed *testbed.Etcd) {
	t.Helper()
	admin, ctx := bed.Admin(), within(t, 20*time.Second)
	do := func(_ any, err error) { require.NoError(t, err) }
	do(admin.UserAdd(ctx, "root", "toor"))
	do(admin.UserGrantRole(ctx, "root", "root"))
	do(admin.RoleAdd(ctx, "shop"))
	all := clientv3.PermissionType(clientv3.PermReadWrite)
	do(admin.RoleGrantPermission(ctx, "shop", "/elasticron/1/shop", "", all))
	for _, prefix := range []string{"/elasticron/2/shop/", "/elasticron/3/shop/"} {
		do(admin.RoleGrantPermission(ctx, "shop", prefix, clientv3.GetPrefixRangeEnd(prefix), all))
	}
	do(admin.UserAdd(ctx, "eva", "s3cret"))
	do(admin.UserGrantRole(ctx, "eva", "shop"))
	do(admin.AuthEnable(ctx))
}

func login(user, password string) func(*etcd.Config) {
	return func(c *etcd.Config) { c.Namespace, c.Username, c.Password = "shop", user, password }
}

func TestLogin(t *testing.T) {
	bed := startAuth(t)
	t.Run("Refused", func(t *testing.T) {
		for name, change := range map[string]func(*etcd.Config){
			"wrong password": login("eva", "wrong-pa55"),
			"unknown user":   login("max", "wrong-pa55"),
			"none":           login("", ""),
			"not permitted":  func(c *etcd.Config) { login("eva", "s3cret")(c); c.Namespace = "bank" },
		} {
			cfg := etcd.Config{Endpoints: bed.Endpoints(), DialTimeout: 20 * time.Second}
			change(&cfg)
			start := time.Now()
			_, err := etcd.Open(within(t, 20*time.Second), cfg)
			require.ErrorIs(t, err, registry.ErrDenied, name)
			require.NotErrorIs(t, err, registry.ErrUnavailable, name)
			require.NotContains(t, err.Error(), "pa55", name)
			require.Equal(t, 1, strings.Count(err.Error(), "etcd: "), "%s: %v", name, err) // finding C 21
			var typed rpctypes.EtcdError
			require.ErrorAs(t, err, &typed, name)
			require.Less(t, time.Since(start), 5*time.Second, "%s: not at once", name)
		}
	})
	t.Run("PasswordFile", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "password")
		require.NoError(t, os.WriteFile(file, []byte("s3cret\n"), 0o600))
		reg, err := registry.Open(within(t, 20*time.Second), "etcd://"+bed.Endpoints()[0]+"/shop?username=eva&password-file="+file)
		require.NoError(t, err)
		require.NoError(t, reg.Close())
	})
}

// Tokens run out every second here; the session and its watch outlive many.
func TestTokensRunOut(t *testing.T) {
	bed := startAuth(t)
	s, client := open(t, bed, login("eva", "s3cret"))
	other, _ := open(t, bed, login("eva", "s3cret"))
	f := follow(t, s)
	require.NoError(t, f.Watcher.Add("/shop", registry.Children))
	f.Until(10*time.Second, "the present state", func() bool { return f.Synced == 1 })
	commit(t, s, registry.Create("/shop", nil), registry.CreateEphemeral("/shop/e", nil))
	for round := range 4 {
		before := s.Deadline()
		eventually(t, 10*time.Second, "a token to run out", func() bool {
			require.NoError(t, s.Err())
			return s.Deadline().Sub(before) > 1500*time.Millisecond
		})
		commit(t, other, registry.Set("/shop/e", []byte{byte(round)}, registry.Version(round)))
		f.Until(10*time.Second, "the change", func() bool { return f.Nodes["/shop/e"].Version == registry.Version(round+1) })
		if round%2 == 1 {
			client.Drop()
		}
	}
	require.NoError(t, s.Err())
}

// Who gives a user to a cluster that asks for none is served, and goes on when it begins to ask.
func TestAuthenticationIsEnabledLater(t *testing.T) {
	bed := testbed.StartEtcd(t, testbed.Options{Tune: func(c *embed.Config) { c.BcryptCost = 4 }})
	s, _ := open(t, bed, login("eva", "s3cret"))
	f := follow(t, s)
	require.NoError(t, f.Watcher.Add("/shop", registry.Self))
	commit(t, s, registry.Create("/shop", nil))
	f.Until(10*time.Second, "the node", func() bool { return f.Nodes["/shop"].Exists() })
	enableAuth(t, bed)
	commit(t, s, registry.Create("/shop/a", nil))
	require.NoError(t, f.Watcher.Add("/shop/a", registry.Self))
	f.Until(10*time.Second, "the other node", func() bool { return f.Nodes["/shop/a"].Exists() })
	require.NoError(t, s.Err())
}

// A connection that broke takes no new login, whatever opens streams on the next. Who was logged out by the service
// logs in again, and what he watches from then on is not taken for denied.
func TestLoginsAreFew(t *testing.T) {
	for name, start := range map[string]func(testing.TB, testbed.Options) *testbed.Etcd{
		"Present": testbed.StartEtcd, "Older": testbed.StartEtcdProcess,
	} {
		t.Run(name, func(t *testing.T) {
			bed := start(t, testbed.Options{Users: true})
			var logins atomic.Int64
			s, client := open(t, bed, login(testbed.EtcdUser, testbed.EtcdPassword), func(c *etcd.Config) {
				c.DialOptions = append(c.DialOptions, grpc.WithChainUnaryInterceptor(func(
					ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption,
				) error {
					if method == pb.Auth_Authenticate_FullMethodName {
						logins.Add(1)
					}
					return invoke(ctx, method, req, reply, cc, opts...)
				}))
			})
			f := follow(t, s)
			require.NoError(t, f.Watcher.Add("/a", registry.Self))
			f.Until(10*time.Second, "the present state", func() bool { return f.Synced == 1 })
			for round := range 4 {
				before := s.Deadline()
				client.Drop()
				eventually(t, 10*time.Second, "a heartbeat", func() bool { return s.Deadline().After(before) })
				commit(t, s, registry.Create("/a", nil))
				f.Until(10*time.Second, "the node", func() bool { return f.Nodes["/a"].Exists() })
				commit(t, s, registry.Delete("/a", 0))
				f.Until(10*time.Second, "its end", func() bool { return !f.Nodes["/a"].Exists() })
				require.Equal(t, int64(1), logins.Load(), round)
			}
			for round := range 3 {
				_, err := bed.Admin().UserChangePassword(within(t, 10*time.Second), testbed.EtcdUser, testbed.EtcdPassword)
				require.NoError(t, err)
				require.NoError(t, f.Watcher.Add(fmt.Sprint("/late", round), registry.Self))
				f.Until(10*time.Second, "its state", func() bool { return f.Synced == 2+round })
				require.Equal(t, int64(2+round), logins.Load())
			}
			require.NoError(t, s.Err())
		})
	}
}

func TestDeniedPaths(t *testing.T) {
	bed := startAuth(t)
	s, _ := open(t, bed, login("eva", "s3cret"))
	ctx := within(t, 20*time.Second)
	commit(t, s, registry.Create("/shop", nil))
	_, err := s.Get(ctx, "/bank")
	require.ErrorIs(t, err, registry.ErrDenied)
	for i, op := range []registry.Op{
		registry.Create("/bank", nil), registry.CreateEphemeral("/bank/x", nil), registry.Set("/bank", nil, 7),
		registry.Check("/bank", registry.AnyVersion), registry.Delete("/bank", 0),
	} {
		_, err = s.Commit(ctx, registry.Create("/shop/a", nil), registry.Set("/shop", nil, 7), op, registry.Create("/bank2", nil))
		var refusal *registry.CommitError
		require.ErrorAs(t, err, &refusal, i)
		require.ErrorIs(t, err, registry.ErrDenied, i)
		require.Equal(t, 2, refusal.Index)
		require.Equal(t, op, refusal.Op)
	}
	nodes, err := s.Get(ctx, "/shop/a")
	require.NoError(t, err)
	require.False(t, nodes[0].Exists())

	// One target that is denied does not stop the others.
	f := follow(t, s)
	require.NoError(t, f.Watcher.Add("/shop", registry.Children))
	require.NoError(t, f.Watcher.Add("/bank", registry.Self))
	require.NoError(t, f.Watcher.Add("/shop", registry.Self))
	denied := 0
	for f.Synced < 2 || denied == 0 {
		events, err := f.Watcher.Next(ctx)
		if err != nil {
			require.ErrorIs(t, err, registry.ErrDenied)
			require.ErrorContains(t, err, "/bank")
			denied++
		}
		for _, ev := range events {
			if ev.Synced {
				f.Synced++
			}
		}
	}
	require.Equal(t, 1, denied)
	commit(t, s, registry.Create("/shop/a", nil))
	f.Until(10*time.Second, "a change of the others", func() bool { return f.Nodes["/shop/a"].Exists() })
}

// Commits that share a request are allowed or denied for themselves: etcd refuses the
// whole for one of them.
func TestSharingWithRights(t *testing.T) {
	bed := startAuth(t)
	g := &gate{open: make(chan struct{})}
	g.heal() // it only counts
	s, _ := open(t, bed, login("eva", "s3cret"), counting(g), func(c *etcd.Config) { c.SessionTimeout = time.Minute })
	commit(t, s, registry.Create("/shop", nil))
	ctx := within(t, 60*time.Second)
	var work sync.WaitGroup
	for i := range 64 {
		work.Go(func() {
			for round := range 10 {
				path := fmt.Sprintf("/shop/n%d-%d", i, round)
				if i%8 == 0 && round%3 == 0 {
					_, err := s.Commit(ctx, registry.Create(path, nil), registry.Create("/bank"+path, nil))
					var refusal *registry.CommitError
					if !errors.As(err, &refusal) || !errors.Is(err, registry.ErrDenied) || refusal.Index != 1 {
						t.Errorf("%s: %v", path, err)
					}
					continue
				}
				if _, err := s.Commit(ctx, registry.Create(path, nil), registry.CreateEphemeral(path+"/e", nil)); err != nil {
					t.Errorf("%s: %v", path, err)
				}
			}
		})
	}
	work.Wait()
	names, err := s.Children(ctx, "/shop")
	require.NoError(t, err)
	require.Len(t, names, 64*10-8*4)
	_, shared := g.sent()
	require.Positive(t, shared)
}

// Nor do compactions, restarts and tokens that run out apply a shared commit twice, or
// one that was refused.
func TestSharingWhileTheServerRestarts(t *testing.T) {
	bed := startAuth(t)
	g := &gate{open: make(chan struct{})}
	g.heal()
	s, _ := open(t, bed, login("eva", "s3cret"), counting(g), func(c *etcd.Config) { c.SessionTimeout = time.Minute })
	commit(t, s, registry.Create("/shop", nil))
	ctx, stop := context.WithCancel(within(t, 60*time.Second))
	const writers = 48
	var answered, unknown [writers]int
	var all atomic.Int64
	var work sync.WaitGroup
	for i := range writers {
		path := fmt.Sprint("/shop/n", i)
		commit(t, s, registry.Create(path, nil))
		work.Go(func() {
			for ctx.Err() == nil {
				call, cancel := context.WithTimeout(context.Background(), 10*time.Second)
				_, err := s.Commit(call, registry.Check("/shop", 0), registry.Set(path, nil, registry.AnyVersion))
				cancel()
				switch {
				case err == nil:
					answered[i]++
					all.Add(1)
				case errors.Is(err, registry.ErrUncertain):
					unknown[i]++
				case !errors.Is(err, registry.ErrUnavailable):
					t.Errorf("%s: %v", path, err)
				}
			}
		})
	}
	for range 3 {
		before := all.Load()
		eventually(t, 20*time.Second, "writes", func() bool { return all.Load() > before+500 })
		compact(t, bed)
		require.NoError(t, bed.Restart())
	}
	before := all.Load()
	eventually(t, 20*time.Second, "writes", func() bool { return all.Load() > before+500 })
	stop()
	work.Wait()
	for i := range writers {
		nodes, err := s.Get(within(t, 10*time.Second), fmt.Sprint("/shop/n", i))
		require.NoError(t, err)
		version := int(nodes[0].Version)
		require.GreaterOrEqual(t, version, answered[i], i)
		require.LessOrEqual(t, version, answered[i]+unknown[i], i)
	}
	_, shared := g.sent()
	require.Positive(t, shared)
	require.NoError(t, s.Err())
}

// compact forgets all revisions before the present one, for which it takes root.
func compact(t *testing.T, bed *testbed.Etcd) {
	t.Helper()
	ctx := within(t, 20*time.Second)
	root := rootClient(t, bed)
	now, err := root.Get(ctx, "compact")
	require.NoError(t, err)
	_, err = root.Compact(ctx, now.Header.Revision)
	require.NoError(t, err)
}

// rootClient may do everything.
func rootClient(t *testing.T, bed *testbed.Etcd) *clientv3.Client {
	t.Helper()
	root, err := clientv3.New(clientv3.Config{Endpoints: bed.Endpoints(), Username: "root", Password: "toor", Context: within(t, time.Minute), Logger: zap.NewNop()})
	require.NoError(t, err)
	t.Cleanup(func() { root.Close() })
	return root
}

// counting has a gate see the transactions.
func counting(g *gate) func(*etcd.Config) {
	return func(c *etcd.Config) {
		c.DialOptions = append(c.DialOptions, grpc.WithChainUnaryInterceptor(g.pass))
	}
}
