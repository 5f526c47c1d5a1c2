package link_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/internal/testbed"
	"github.com/elasticron/elasticron/internal/testbed/harness"
	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/zookeeper/internal/link"
)

func create(path string, flags int32) *zk.CreateRequest {
	return &zk.CreateRequest{Path: path, Data: []byte("x"), Acl: world, Flags: flags}
}

func TestRequests(t *testing.T) {
	l := direct(t)
	ctx := within(t, 20*time.Second)
	dir := fresh(t, l)
	_, _, err := l.Get(ctx, dir+"/a", false)
	require.ErrorIs(t, err, zk.ErrNoNode)
	stat, err := l.Exists(ctx, dir+"/a", false)
	require.NoError(t, err)
	require.Nil(t, stat)
	w, err := l.Multi(ctx, create(dir+"/a", zk.FlagEphemeral), create(dir+"/b", 0), &zk.SetDataRequest{Path: dir, Version: 0})
	require.NoError(t, err)
	require.Len(t, w.Results, 3)
	value, stat, err := l.Get(ctx, dir+"/a", false)
	require.NoError(t, err)
	require.Equal(t, "x", string(value))
	require.Equal(t, l.Number(), stat.EphemeralOwner)
	require.Equal(t, w.Zxid, stat.Czxid)
	names, err := l.Children(ctx, dir, false)
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"a", "b"}, names)
	w, err = l.Multi(ctx, create(dir+"/c", 0), create(dir+"/b", 0), create(dir+"/d", 0))
	require.ErrorIs(t, err, zk.ErrNodeExists)
	require.Len(t, w.Results, 3)
	require.NoError(t, w.Results[0].Error)
	require.ErrorIs(t, w.Results[1].Error, zk.ErrNodeExists)
	w, err = l.Multi(ctx, create(dir+"/alone", 0)) // the reply to a set is not the only one to say so
	require.NoError(t, err)
	stat, err = l.Exists(ctx, dir+"/alone", false)
	require.NoError(t, err)
	require.Equal(t, stat.Czxid, w.Zxid)
	w, err = l.Multi(ctx, &zk.DeleteRequest{Path: dir + "/alone"})
	require.NoError(t, err)
	require.Greater(t, w.Zxid, stat.Czxid)
	_, err = l.Multi(ctx, &zk.CreateRequest{Path: dir + "/big", Data: make([]byte, link.MaxRequest), Acl: world})
	require.ErrorIs(t, err, registry.ErrInvalid)
	require.NoError(t, l.Close(ctx))
	require.NoError(t, l.Close(ctx), "again")
	other := direct(t)
	stat, err = other.Exists(ctx, dir+"/a", false)
	require.NoError(t, err)
	require.Nil(t, stat, "Close has ended the session at the service")
	_, _, err = l.Get(ctx, dir, false)
	require.ErrorIs(t, err, registry.ErrSessionLost)
	_, err = l.Multi(ctx, create(dir+"/z", 0))
	require.ErrorIs(t, err, registry.ErrSessionLost)
	require.NotErrorIs(t, err, registry.ErrUncertain)
}

// Several nodes by one request are what each is by itself. The server is known to understand that once Open has returned.
func TestGetAll(t *testing.T) {
	l := direct(t)
	ctx := within(t, 20*time.Second)
	dir := fresh(t, l)
	denied := &zk.CreateRequest{Path: dir + "/denied", Acl: zk.DigestACL(zk.PermAll, "somebody", "else")}
	empty := &zk.CreateRequest{Path: dir + "/empty", Data: []byte{}, Acl: world}
	_, err := l.Multi(ctx, create(dir+"/a", zk.FlagEphemeral), create(dir+"/b", 0), denied, empty, &zk.SetDataRequest{Path: dir + "/b", Data: []byte("y")})
	require.NoError(t, err)
	paths := []string{dir + "/a", dir + "/none", dir + "/b", dir + "/denied", dir, dir + "/empty"}
	found, err := l.GetAll(ctx, paths)
	require.NoError(t, err)
	require.Len(t, found, len(paths))
	for i, path := range paths {
		value, stat, err := l.Get(ctx, path, false)
		if err != nil {
			require.Equal(t, err, found[i].Err, path)
			continue
		}
		require.Equal(t, link.Found{Value: value, Stat: stat}, found[i], path)
	}
	require.Equal(t, zk.ErrNoNode, found[1].Err)
	require.Equal(t, zk.ErrNoAuth, found[3].Err)
	require.NoError(t, l.Close(ctx))
	_, err = l.GetAll(ctx, paths)
	require.ErrorIs(t, err, registry.ErrSessionLost)
}

// TestConcurrentRequests has many callers, some of which give up.
func TestConcurrentRequests(t *testing.T) {
	l := direct(t)
	ctx := within(t, 30*time.Second)
	dir := fresh(t, l)
	var work sync.WaitGroup
	for i := range 64 {
		work.Go(func() {
			for n := range 50 {
				if i%8 == 0 {
					short, cancel := context.WithTimeout(ctx, time.Duration(n)*10*time.Microsecond)
					_, _ = l.Multi(short, &zk.SetDataRequest{Path: dir, Data: make([]byte, 100), Version: -1})
					cancel()
					continue
				}
				if _, err := l.Multi(ctx, &zk.SetDataRequest{Path: dir, Data: make([]byte, 100), Version: -1}); err != nil {
					t.Error(err)
				}
				if _, _, err := l.Get(ctx, dir, false); err != nil {
					t.Error(err)
				}
			}
		})
	}
	work.Wait()
}

// A log collects notifications.
type log struct {
	mu  sync.Mutex
	all []zk.Event
}

func (n *log) add(e zk.Event) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.all = append(n.all, e)
}

func (n *log) has(kind zk.EventType, path string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, e := range n.all {
		if e.Type == kind && e.Path == path {
			return true
		}
	}
	return false
}

// TestWatches arms each kind, also over a broken connection.
func TestWatches(t *testing.T) {
	for name, breakIt := range map[string]bool{"connected": false, "cut": true} {
		t.Run(name, func(t *testing.T) {
			proxy := way(t)
			var heard log
			l := open(t, link.Config{Servers: []string{proxy.Addr()}, SessionTimeout: 6 * time.Second, Notify: heard.add})
			other := direct(t)
			ctx := within(t, 30*time.Second)
			dir := fresh(t, other)
			_, err := other.Multi(ctx, create(dir+"/set", 0), create(dir+"/gone", 0), create(dir+"/again", 0), create(dir+"/plain", 0))
			require.NoError(t, err)
			for _, path := range []string{"/set", "/gone", "/again"} {
				_, _, err = l.Get(ctx, dir+path, true)
				require.NoError(t, err)
			}
			_, _, err = l.Get(ctx, dir+"/plain", false)
			require.NoError(t, err)
			stat, err := l.Exists(ctx, dir+"/new", true)
			require.NoError(t, err)
			require.Nil(t, stat)
			_, err = l.Children(ctx, dir, true)
			require.NoError(t, err)
			heal := func() {}
			if breakIt {
				heal = proxy.Refuse()
			}
			_, err = other.Multi(ctx, &zk.SetDataRequest{Path: dir + "/set", Version: -1}, &zk.DeleteRequest{Path: dir + "/gone", Version: -1},
				create(dir+"/new", 0), &zk.DeleteRequest{Path: dir + "/again", Version: -1}, &zk.SetDataRequest{Path: dir + "/plain", Version: -1})
			require.NoError(t, err)
			heal()
			eventually(t, "events", func() bool {
				return heard.has(zk.EventNodeDataChanged, dir+"/set") && heard.has(zk.EventNodeDeleted, dir+"/gone") &&
					heard.has(zk.EventNodeCreated, dir+"/new") && heard.has(zk.EventNodeChildrenChanged, dir)
			})
			_, _, err = l.Get(ctx, dir+"/plain", false)
			require.NoError(t, err)
			require.False(t, heard.has(zk.EventNodeDataChanged, dir+"/plain"))
			require.NoError(t, l.Err())
		})
	}
}

// TestDisarmedIsNotRenewed looks at what a new connection asks for.
func TestDisarmedIsNotRenewed(t *testing.T) {
	proxy := way(t)
	var heard log
	l := open(t, link.Config{Servers: []string{proxy.Addr()}, SessionTimeout: 6 * time.Second, Notify: heard.add})
	other := direct(t)
	ctx := within(t, 30*time.Second)
	dir := fresh(t, other)
	_, err := other.Multi(ctx, create(dir+"/kept", 0), create(dir+"/dropped", 0))
	require.NoError(t, err)
	for _, path := range []string{"/kept", "/dropped"} {
		_, _, err = l.Get(ctx, dir+path, true)
		require.NoError(t, err)
	}
	l.Disarm(dir+"/dropped", false)
	proxy.Drop()
	_, _, err = l.Get(ctx, dir, false) // on the new connection
	require.NoError(t, err)
	_, err = other.Multi(ctx, &zk.SetDataRequest{Path: dir + "/dropped", Version: -1}, &zk.SetDataRequest{Path: dir + "/kept", Version: -1})
	require.NoError(t, err)
	eventually(t, "the event", func() bool { return heard.has(zk.EventNodeDataChanged, dir+"/kept") })
	require.False(t, heard.has(zk.EventNodeDataChanged, dir+"/dropped"))
}

// TestCutOff: Done comes by Deadline and before the service ends the session,
// whatever is swallowed; Close ends it at the service once there is a way again.
func TestCutOff(t *testing.T) {
	for name, direction := range map[string]testbed.Direction{"both": testbed.Both, "requests": testbed.Requests, "answers": testbed.Answers} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			proxy := way(t)
			l := open(t, link.Config{Servers: []string{proxy.Addr()}})
			other := direct(t)
			ctx := within(t, 30*time.Second)
			node := fresh(t, other) + "/e"
			_, err := l.Multi(ctx, create(node, zk.FlagEphemeral))
			require.NoError(t, err)
			stalled := harness.Stalls(t)
			heal := proxy.Blackhole(direction)
			started := time.Now()
			failed := make(chan error, 1)
			go func() {
				_, err := l.Multi(ctx, create(node+"2", 0))
				failed <- err
			}()
			<-l.Done()
			lost := time.Now()
			require.False(t, lost.After(l.Deadline().Add(20*time.Millisecond+stalled())), "Done is late by %v", lost.Sub(l.Deadline()))
			require.Less(t, lost.Sub(started), timeout+stalled())
			require.ErrorIs(t, l.Err(), registry.ErrSessionLost)
			require.ErrorIs(t, <-failed, registry.ErrUncertain)
			lives(t, other, node)
			require.Positive(t, proxy.Hits())
			if direction == testbed.Answers {
				heal()
				require.NoError(t, l.Close(ctx))
				stat, err := other.Exists(ctx, node, false)
				require.NoError(t, err)
				require.Nil(t, stat)
				return
			}
			short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
			defer cancel()
			err = l.Close(short)
			require.ErrorContains(t, err, "expires")
			heal()
			eventually(t, "expiry", func() bool {
				stat, err := other.Exists(ctx, node, false)
				return err == nil && stat == nil
			})
		})
	}
}

// TestBlip: a cut of less than half the timeout costs nothing.
func TestBlip(t *testing.T) {
	proxy := way(t)
	l := open(t, link.Config{Servers: []string{proxy.Addr()}, SessionTimeout: 4 * time.Second})
	ctx := within(t, 30*time.Second)
	id := l.ID()
	for range 5 {
		heal := proxy.Refuse()
		timer := time.NewTimer(time.Second)
		<-timer.C
		heal()
		_, _, err := l.Get(ctx, "/", false)
		require.NoError(t, err)
	}
	require.NoError(t, l.Err())
	require.Equal(t, id, l.ID())
	require.Positive(t, proxy.Hits())
}

func TestOpenNamesEveryServer(t *testing.T) {
	silent := way(t)
	defer silent.Hold()()
	ctx := within(t, 2*time.Second)
	_, err := link.Open(ctx, link.Config{Servers: []string{"127.0.0.1:1", silent.Addr(), "no.such.host.invalid:2181"}, SessionTimeout: timeout})
	require.ErrorIs(t, err, registry.ErrUnavailable)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, "127.0.0.1:1: dial tcp")
	require.ErrorContains(t, err, "does not answer within")
	require.ErrorContains(t, err, "no.such.host.invalid")
}

// TestDeadAndStalled: a list with one dead and one stalled server works.
func TestDeadAndStalled(t *testing.T) {
	stalled, good := way(t), way(t)
	defer stalled.Hold()()
	for range 6 { // whatever the order
		l := open(t, link.Config{Servers: []string{"127.0.0.1:1", stalled.Addr(), good.Addr()}})
		id := l.ID()
		good.Drop()
		_, _, err := l.Get(within(t, 10*time.Second), "/", false)
		require.NoError(t, err)
		require.Equal(t, id, l.ID())
		require.NoError(t, l.Close(within(t, 5*time.Second)))
	}
}
