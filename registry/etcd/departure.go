package etcd

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
)

// A departure notes whether the message of one call may have left. gRPC waits for
// a connection on its own; without this, a context that ends meanwhile could not
// be told from one that ends after the request was sent.
//
// It is the codec of the call: gRPC encodes the message of a unary call once, when
// it has a stream on a connection and before it writes any of it. What it sends
// again by itself, because no server has seen it, it does not encode again.
type departure struct {
	encoding.CodecV2
	begun atomic.Bool
}

func newDeparture() *departure { return departureWith(encoding.GetCodecV2(proto.Name)) }

// departureWith takes gRPC's codec, or nil when the program has replaced it by one
// of the older kind, which cannot be wrapped: all messages count as sent then.
func departureWith(codec encoding.CodecV2) *departure {
	d := &departure{CodecV2: codec}
	d.begun.Store(codec == nil)
	return d
}

// options are callOptions, with which each call notes its departure.
func (d *departure) options() []grpc.CallOption {
	if d.CodecV2 == nil {
		return callOptions
	}
	return append(slices.Clip(callOptions), grpc.ForceCodecV2(d))
}

func (d *departure) sent() bool { return d.begun.Load() }

// Marshal is the last that happens before the message leaves.
func (d *departure) Marshal(v any) (mem.BufferSlice, error) {
	d.begun.Store(true)
	return d.CodecV2.Marshal(v)
}

// Name keeps the content type of the request what it is without a codec.
func (*departure) Name() string { return "" }

// attempts notes when the last attempt of one call began. gRPC makes another by
// itself when no server has seen the one before, which may have been long ago; so
// it is the last that was answered.
//
// It poses as the call's credentials, which gRPC asks for in each attempt: when it
// has a connection, and before the header leaves.
type attempts struct{ last atomic.Pointer[time.Time] }

func (a *attempts) options() []grpc.CallOption {
	return append(slices.Clip(callOptions), grpc.PerRPCCredentials(a))
}

// lastAt is no later than the server can have got what it answered.
func (a *attempts) lastAt() time.Time {
	if at := a.last.Load(); at != nil {
		return *at
	}
	return time.Time{}
}

// GetRequestMetadata adds nothing to the request.
func (a *attempts) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	now := time.Now()
	a.last.Store(&now)
	return nil, nil //nolint:nilnil // no metadata is what there is
}

// RequireTransportSecurity is false: there is no secret.
func (*attempts) RequireTransportSecurity() bool { return false }
