package etcd_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/embed"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/elasticron/elasticron/internal/testbed"
	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/etcd"
)

// signedTokens has a member give tokens that it signs, for ttl; use does not make them last longer.
func signedTokens(t *testing.T, ttl time.Duration) testbed.Options {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	private, err := x509.MarshalECPrivateKey(key)
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "key.pem")
	require.NoError(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: private}), 0o600))
	return testbed.Options{Tune: func(c *embed.Config) {
		c.BcryptCost = 4
		c.AuthToken = fmt.Sprintf("jwt,priv-key=%s,sign-method=ES256,ttl=%v", file, ttl)
	}}
}

// lastingTokens has a member that looks at users, and whose tokens last as long as a test does.
func lastingTokens(t *testing.T) *testbed.Etcd {
	t.Helper()
	bed := testbed.StartEtcd(t, testbed.Options{Tune: func(c *embed.Config) { c.BcryptCost = 4 }})
	enableAuth(t, bed)
	return bed
}

// A tally counts logins and streams of watches.
type tally struct {
	logins, watches atomic.Int64
	strips          bool // watches show no login
}

func (n *tally) options(c *etcd.Config) {
	c.DialOptions = append(c.DialOptions, grpc.WithChainUnaryInterceptor(func(
		ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption,
	) error {
		if method == pb.Auth_Authenticate_FullMethodName {
			n.logins.Add(1)
		}
		return invoke(ctx, method, req, reply, cc, opts...)
	}), grpc.WithChainStreamInterceptor(func(
		ctx context.Context, d *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption,
	) (grpc.ClientStream, error) {
		if method == pb.Watch_Watch_FullMethodName {
			n.watches.Add(1)
			if n.strips {
				ctx = metadata.NewOutgoingContext(ctx, nil)
			}
		}
		return open(ctx, d, cc, method, opts...)
	}))
}

// outlives holds that a session lives on for twice its timeout, though nobody calls anything.
func outlives(t *testing.T, s registry.Session) {
	t.Helper()
	before := s.Deadline()
	eventually(t, 6*sessionTimeout, "heartbeats", func() bool {
		require.NoError(t, s.Err())
		return s.Deadline().Sub(before) > 2*sessionTimeout
	})
}

// etcd looks at the login of each heartbeat. One that it refuses is made anew, by who sends nothing else too.
func TestAnIdleSessionOutlivesItsToken(t *testing.T) {
	const ttl = 2 * time.Second
	short := testbed.StartEtcd(t, signedTokens(t, ttl))
	enableAuth(t, short)
	maker, _ := open(t, short, login("eva", "s3cret"))
	commit(t, maker, registry.Create("/shop", nil))
	for name, who := range map[string]func(*etcd.Config){"Root": login("root", "toor"), "User": login("eva", "s3cret")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var n tally
			s, _ := open(t, short, who, n.options)
			commit(t, s, registry.CreateEphemeral("/shop/"+name, nil))
			outlives(t, s)
			require.Greater(t, n.logins.Load(), int64(2*sessionTimeout/ttl-1), "void: the token did not run out")
			require.Less(t, n.logins.Load(), int64(5*sessionTimeout/ttl))
		})
	}
	t.Run("RightsChange", func(t *testing.T) { // of whomever: a signed token names the state of all of them
		t.Parallel()
		bed := testbed.StartEtcd(t, signedTokens(t, time.Hour))
		enableAuth(t, bed)
		var n tally
		s, _ := open(t, bed, login("eva", "s3cret"), n.options)
		commit(t, s, registry.CreateEphemeral("/shop", nil))
		root := rootClient(t, bed)
		_, err := root.RoleAdd(within(t, 20*time.Second), "another")
		require.NoError(t, err)
		outlives(t, s)
		require.EqualValues(t, 2, n.logins.Load())
	})
	t.Run("PasswordIsSet", func(t *testing.T) { // which logs him out everywhere
		t.Parallel()
		bed := lastingTokens(t)
		var n tally
		s, _ := open(t, bed, login("eva", "s3cret"), n.options)
		root := rootClient(t, bed)
		_, err := root.UserChangePassword(within(t, 20*time.Second), "eva", "s3cret")
		require.NoError(t, err)
		outlives(t, s)
		require.EqualValues(t, 2, n.logins.Load())
	})
	t.Run("UsersComeLater", func(t *testing.T) {
		t.Parallel()
		bed := testbed.StartEtcd(t, testbed.Options{Tune: func(c *embed.Config) { c.BcryptCost = 4 }})
		s, _ := open(t, bed, login("eva", "s3cret"))
		enableAuth(t, bed)
		outlives(t, s)
	})
}

// A session that may not write a node of its own any more is lost: etcd refuses its heartbeats. They are not hurried.
func TestTheRightToANodeOfASessionIsTaken(t *testing.T) {
	bed := startAuth(t)
	s, client := open(t, bed, login("eva", "s3cret"))
	commit(t, s, registry.Create("/shop", nil), registry.CreateEphemeral("/shop/e", nil))
	_, err := rootClient(t, bed).RoleRevokePermission(within(t, 20*time.Second), "shop", "/elasticron/2/shop/", "/elasticron/2/shop0")
	require.NoError(t, err)
	client.Requests()
	<-s.Done()
	require.ErrorIs(t, s.Err(), registry.ErrSessionLost)
	require.LessOrEqual(t, client.Requests()[beat], 12)
}

// A watch that nobody adds to finds by its signs of life that its login is refused.
func TestASignOfLifeRenewsTheLogin(t *testing.T) {
	bed := lastingTokens(t)
	var n tally
	reg, _ := connect(t, bed, login("eva", "s3cret"), n.options, func(c *etcd.Config) {
		c.SessionTimeout = 3 * sessionTimeout
		c.Endpoints = append(c.Endpoints, bed.Client().Endpoints()...) // with one there are none
	})
	ctx := within(t, 30*time.Second)
	store, err := reg.OpenStore(ctx)
	require.NoError(t, err)
	w, err := store.Watch(ctx)
	require.NoError(t, err)
	require.NoError(t, w.Add("/shop", registry.Self))
	synced(t, w)
	root := rootClient(t, bed)
	require.True(t, etcd.LoggedIn(reg))
	_, err = root.UserChangePassword(ctx, "eva", "s3cret")
	require.NoError(t, err)
	eventually(t, 4*sessionTimeout, "it to be known", func() bool { return !etcd.LoggedIn(reg) })
	require.EqualValues(t, 1, n.watches.Load(), "and the watch goes on")
	_, err = root.Put(ctx, etcd.NodeKey("/shop"), "")
	require.NoError(t, err)
	events, err := w.Next(ctx)
	require.NoError(t, err)
	require.True(t, events[0].Node.Exists())
	require.NoError(t, store.Close(ctx))
}

// synced takes events until the first Synced.
func synced(t *testing.T, w registry.Watcher) {
	t.Helper()
	for {
		events, err := w.Next(within(t, 20*time.Second))
		require.NoError(t, err)
		for _, ev := range events {
			if ev.Synced {
				return
			}
		}
	}
}

// denies demands that a target is refused.
func denies(t *testing.T, w registry.Watcher, path string) {
	t.Helper()
	for {
		_, err := w.Next(within(t, 10*time.Second))
		if err != nil {
			require.ErrorIs(t, err, registry.ErrDenied)
			require.NotErrorIs(t, err, registry.ErrUnavailable)
			require.ErrorContains(t, err, path)
			return
		}
	}
}

// A login that is refused is told by a watch as it is by a read, and both are served again once it is good.
func TestAWatchSaysThatTheLoginIsRefused(t *testing.T) {
	bed := startAuth(t)
	var n tally
	s, client := open(t, bed, login("eva", "s3cret"), n.options, patient)
	ctx := within(t, time.Minute)
	root := rootClient(t, bed)
	w, err := s.Watch(ctx)
	require.NoError(t, err)
	require.NoError(t, w.Add("/shop", registry.Self))
	synced(t, w)
	_, err = root.UserChangePassword(ctx, "eva", "another")
	require.NoError(t, err)
	client.Drop()
	_, err = s.Get(ctx, "/shop")
	require.ErrorIs(t, err, registry.ErrDenied)
	denies(t, w, "/shop")
	require.NoError(t, w.Add("/shop", registry.Self))
	require.NoError(t, w.Add("/shop", registry.Children))
	denies(t, w, "/shop")
	denies(t, w, "/shop")
	before := n.logins.Load()
	quiet := time.NewTimer(time.Second)
	<-quiet.C
	require.LessOrEqual(t, n.logins.Load(), before+3, "nobody asks for it: it may be asked for by heartbeats")
	_, err = root.UserChangePassword(ctx, "eva", "s3cret")
	require.NoError(t, err)
	require.NoError(t, w.Add("/shop", registry.Self))
	synced(t, w)
	require.NoError(t, w.Close())
}

// Who gives no user to a cluster that begins to ask for one is refused.
func TestAWatchWithoutALogin(t *testing.T) {
	bed := testbed.StartEtcd(t, testbed.Options{Tune: func(c *embed.Config) { c.BcryptCost = 4 }})
	var n tally
	s, client := open(t, bed, n.options, patient)
	w, err := s.Watch(within(t, 10*time.Second))
	require.NoError(t, err)
	require.NoError(t, w.Add("/shop", registry.Self))
	synced(t, w)
	enableAuth(t, bed)
	require.NoError(t, w.Add("/shop/a", registry.Self))
	denies(t, w, "/shop/a")
	client.Drop()
	denies(t, w, "/shop (self)")
	require.Less(t, n.watches.Load(), int64(4))
	require.NoError(t, w.Close())
}

// What is refused again and again is asked for ever more rarely.
func TestARefusedWatchIsPatient(t *testing.T) {
	bed := startAuth(t)
	n := tally{strips: true}
	s, _ := open(t, bed, login("eva", "s3cret"), n.options, patient)
	w, err := s.Watch(within(t, 10*time.Second))
	require.NoError(t, err)
	require.NoError(t, w.Add("/shop", registry.Self))
	eventually(t, 10*time.Second, "a stream", func() bool { return n.watches.Load() > 0 })
	wait := time.NewTimer(3 * time.Second)
	<-wait.C
	require.Greater(t, n.watches.Load(), int64(3), "it goes on")
	require.Less(t, n.watches.Load(), int64(18))
	require.NoError(t, w.Close())
}
