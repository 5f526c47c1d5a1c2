package testbed

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const (
	// EtcdUser may use every key of a cluster with Options.Users.
	EtcdUser = "shop"
	// EtcdPassword is that user's.
	EtcdPassword = "shop"

	rootUser     = "root"
	rootPassword = "root"
	// everything is each key from this one on, as both ends of a range.
	everything = "\x00"
)

// Users reports whether the servers ask for a login.
func (e *Etcd) Users() bool { return e.options.Users }

// enableUsers has the cluster ask for a login.
func (e *Etcd) enableUsers() error {
	ctx, cancel := context.WithTimeout(context.Background(), adminTime)
	defer cancel()
	admin := e.Admin()
	for _, do := range []func() (any, error){
		func() (any, error) { return admin.UserAdd(ctx, rootUser, rootPassword) },
		func() (any, error) { return admin.UserGrantRole(ctx, rootUser, rootUser) },
		func() (any, error) { return admin.RoleAdd(ctx, EtcdUser) },
		func() (any, error) {
			return admin.RoleGrantPermission(ctx, EtcdUser, everything, everything, clientv3.PermissionType(clientv3.PermReadWrite))
		},
		func() (any, error) { return admin.UserAdd(ctx, EtcdUser, EtcdPassword) },
		func() (any, error) { return admin.UserGrantRole(ctx, EtcdUser, EtcdUser) },
		func() (any, error) { return admin.AuthEnable(ctx) },
	} {
		if err := once(ctx, do); err != nil {
			return err
		}
	}
	return nil
}

// once has a step done whose connection may break, as it does now and then just after a server has come up: it
// is tried again then, and may turn out to be done.
func once(ctx context.Context, do func() (any, error)) error {
	for again := false; ; again = true {
		_, err := do()
		switch {
		case again && (errors.Is(err, rpctypes.ErrUserAlreadyExist) || errors.Is(err, rpctypes.ErrRoleAlreadyExist)):
			return nil
		case !errors.Is(err, rpctypes.ErrNoLeader) && status.Code(err) != codes.Unavailable:
			return err
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("%w (last: %w)", ctx.Err(), err)
		}
	}
}

// A Range is the keys from From on which are before To.
type Range struct{ From, To string }

// Deny takes from EtcdUser the rights on ranges of keys, which do not overlap, until allow, which is
// idempotent. etcd knows no right that is taken away, so what lies between them is granted instead. It
// asks for the right to watch when a watch is made and not again, so all connections are cut.
func (e *Etcd) Deny(ranges ...Range) (allow func(), err error) {
	all := []Range{{everything, everything}}
	around := outside(ranges)
	if err := errors.Join(e.grant(around), e.revoke(all)); err != nil {
		return func() {}, fmt.Errorf("testbed: deny %q: %w", ranges, err)
	}
	e.mu.Lock()
	clients := slices.Clone(e.clients)
	e.mu.Unlock()
	for _, c := range clients {
		c.Drop()
	}
	return sync.OnceFunc(func() {
		if err := errors.Join(e.grant(all), e.revoke(around)); err != nil {
			e.tb.Errorf("testbed: allow %q again: %v", ranges, err)
		}
	}), nil
}

// outside returns the ranges between others, before the first and after the last.
func outside(ranges []Range) (between []Range) {
	from := everything
	for _, r := range slices.SortedFunc(slices.Values(ranges), func(a, b Range) int { return strings.Compare(a.From, b.From) }) {
		between = append(between, Range{from, r.From})
		from = r.To
	}
	return append(between, Range{from, everything})
}

func (e *Etcd) grant(ranges []Range) error {
	ctx, cancel := context.WithTimeout(context.Background(), adminTime)
	defer cancel()
	var errs []error
	for _, r := range ranges {
		_, err := e.Admin().RoleGrantPermission(ctx, EtcdUser, r.From, r.To, clientv3.PermissionType(clientv3.PermReadWrite))
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func (e *Etcd) revoke(ranges []Range) error {
	ctx, cancel := context.WithTimeout(context.Background(), adminTime)
	defer cancel()
	var errs []error
	for _, r := range ranges {
		_, err := e.Admin().RoleRevokePermission(ctx, EtcdUser, r.From, r.To)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
