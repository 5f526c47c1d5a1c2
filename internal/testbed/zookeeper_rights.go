package testbed

import (
	"errors"
	"fmt"
	"net"
	"path"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
)

// warden is the user who keeps all rights where everybody else's are taken.
const warden, wardenPassword = "warden", "warden"

// Deny takes from everybody all rights on a node and on what is below it, and that to delete
// it, until allow, which is idempotent. ZooKeeper has no ACL for a part of the tree, and the right to
// delete is the parent's: until allow nobody deletes its other children either. Nor does it tell
// who watches, and of what he may not read it tells him nothing at all: so the node is set while he
// still may, and he reads again once he may not.
func (z *ZooKeeper) Deny(node string) (allow func(), err error) {
	nobody := zk.DigestACL(zk.PermAll, warden, wardenPassword)
	noDelete := append(zk.WorldACL(zk.PermAll&^zk.PermDelete), nobody...)
	resume := z.Pause() // what the servers tell of the set arrives afterwards
	defer resume()
	nodes, err := z.keep(node, nobody, noDelete)
	if err != nil {
		return func() {}, fmt.Errorf("testbed: deny %s: %w", node, err)
	}
	return sync.OnceFunc(func() {
		world := zk.WorldACL(zk.PermAll)
		if err := z.setRights(append([]string{path.Dir(node)}, nodes...), world); err != nil {
			z.tb.Errorf("testbed: allow %s again: %v", node, err)
		}
	}), nil
}

// keep sets a node, and then its rights, those of all below it and of its parent. It returns
// the nodes without the parent.
func (z *ZooKeeper) keep(node string, below, parent []zk.ACL) (nodes []string, err error) {
	conn, err := z.warden(z.Addrs())
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	nodes = []string{node}
	for i := 0; i < len(nodes); i++ {
		names, _, err := conn.Children(nodes[i])
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			nodes = append(nodes, path.Join(nodes[i], name))
		}
	}
	value, _, err := conn.Get(node)
	if err != nil {
		return nil, err
	}
	if _, err := conn.Set(node, value, -1); err != nil {
		return nil, err
	}
	return nodes, errors.Join(z.setRights(nodes, below), z.setRights([]string{path.Dir(node)}, parent))
}

// setRights returns once every server has them. The first node must be there; others may have gone: nodes of locks, and
// their directory by itself.
func (z *ZooKeeper) setRights(nodes []string, acl []zk.ACL) error {
	conn, err := z.warden(z.Addrs())
	if err != nil {
		return err
	}
	defer conn.Close()
	for i, node := range nodes {
		if _, err := conn.SetACL(node, acl, -1); err != nil && (i == 0 || !errors.Is(err, zk.ErrNoNode)) {
			return err
		}
	}
	for _, addr := range z.Addrs() {
		one, err := z.warden([]string{addr})
		if err != nil {
			return err
		}
		_, err = one.Sync(nodes[0])
		one.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// warden connects with all rights.
func (z *ZooKeeper) warden(addrs []string) (*zk.Conn, error) {
	conn, events, err := zk.Connect(addrs, adminTime, zk.WithLogger(noLog{}), zk.WithDialer(net.DialTimeout))
	if err != nil {
		return nil, err
	}
	limit := time.After(adminTime)
	for {
		select {
		case e := <-events:
			if e.State == zk.StateHasSession {
				return conn, conn.AddAuth("digest", []byte(warden+":"+wardenPassword))
			}
		case <-limit:
			conn.Close()
			return nil, errors.New("no session")
		}
	}
}

type noLog struct{}

func (noLog) Printf(string, ...any) {}
