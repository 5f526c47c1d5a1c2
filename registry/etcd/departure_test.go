package etcd

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
)

func TestDepartureIsWhenTheMessageIsEncoded(t *testing.T) {
	d := newDeparture()
	require.False(t, d.sent())
	data, err := d.Marshal(&pb.LeaseGrantRequest{TTL: 7})
	require.NoError(t, err)
	require.True(t, d.sent())
	back := new(pb.LeaseGrantRequest)
	require.NoError(t, d.Unmarshal(data, back))
	require.EqualValues(t, 7, back.TTL)
	require.Len(t, d.options(), len(callOptions)+1)
}

// orderly is a codec that looks when it is asked.
type orderly struct {
	encoding.CodecV2
	asked func()
}

func (o orderly) Marshal(any) (mem.BufferSlice, error) {
	o.asked()
	return nil, errors.New("oops")
}

func TestDepartureIsNotedBeforeTheFirstByteExists(t *testing.T) {
	var d *departure
	d = departureWith(orderly{encoding.GetCodecV2(proto.Name), func() { require.True(t, d.sent()) }})
	_, err := d.Marshal(nil)
	require.ErrorContains(t, err, "oops")
}

func TestWithoutACodecToWrapEverythingCountsAsSent(t *testing.T) {
	d := departureWith(nil)
	require.True(t, d.sent())
	require.Len(t, d.options(), len(callOptions))
}
