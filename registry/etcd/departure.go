package etcd

import (
	"cmp"
	"context"
	"slices"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
)

// A departure notes when the last attempt of one call may have left. gRPC waits for a connection on its own; without
// this, a context that ends meanwhile could not be told from one that ends after the request was sent. And it makes
// another attempt by itself when no server has seen the one before, which may have been long ago.
//
// It poses as the call's credentials, which gRPC asks for in each attempt: when it has a connection, and before the
// header leaves.
type departure struct{ last atomic.Pointer[time.Time] }

// options are callOptions, with which one call notes its departure.
func (d *departure) options() []grpc.CallOption {
	return append(slices.Clip(callOptions), grpc.PerRPCCredentials(d))
}

func (d *departure) sent() bool { return d.last.Load() != nil }

// at is no later than the server can have got what it answered.
func (d *departure) at() time.Time { return *cmp.Or(d.last.Load(), new(time.Time)) }

// GetRequestMetadata adds nothing to the request.
func (d *departure) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	now := time.Now()
	d.last.Store(&now)
	return nil, nil //nolint:nilnil // no metadata is what there is
}

// RequireTransportSecurity is false: there is no secret.
func (*departure) RequireTransportSecurity() bool { return false }
