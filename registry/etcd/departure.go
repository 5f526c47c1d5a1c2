package etcd

import (
	"slices"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
)

// A departure notes whether, and when, the message of one call may have left. gRPC waits for
// a connection on its own; without this, a context that ends meanwhile could not
// be told from one that ends after the request was sent.
//
// It is the codec of the call: gRPC encodes the message of a unary call once, when
// it has a stream on a connection and before it writes any of it. What it sends
// again by itself, because no server has seen it, it does not encode again.
type departure struct {
	encoding.CodecV2
	begun atomic.Pointer[time.Time]
}

func newDeparture() *departure { return departureWith(encoding.GetCodecV2(proto.Name)) }

// departureWith takes gRPC's codec, or nil when the program has replaced it by one
// of the older kind, which cannot be wrapped: all messages count as sent then.
func departureWith(codec encoding.CodecV2) *departure {
	d := &departure{CodecV2: codec}
	if codec == nil {
		d.begin()
	}
	return d
}

func (d *departure) begin() {
	now := time.Now()
	d.begun.Store(&now)
}

// options are callOptions, with which each call notes its departure.
func (d *departure) options() []grpc.CallOption {
	if d.CodecV2 == nil {
		return callOptions
	}
	return append(slices.Clip(callOptions), grpc.ForceCodecV2(d))
}

func (d *departure) sent() bool { return d.begun.Load() != nil }

// Marshal is the last that happens before the message leaves.
func (d *departure) Marshal(v any) (mem.BufferSlice, error) {
	d.begin()
	return d.CodecV2.Marshal(v)
}

// Name keeps the content type of the request what it is without a codec.
func (*departure) Name() string { return "" }
