package testbed

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestAStepWhoseConnectionBreaksIsDoneOnce(t *testing.T) {
	broken := status.Error(codes.Unavailable, "use of closed network connection")
	for name, c := range map[string]struct {
		answers []error
		want    error
	}{
		"done":                   {[]error{nil}, nil},
		"lost, then done":        {[]error{broken, broken, nil}, nil},
		"done, and answer lost":  {[]error{broken, rpctypes.ErrUserAlreadyExist}, nil},
		"refused":                {[]error{rpctypes.ErrUserNotFound}, rpctypes.ErrUserNotFound},
		"refused for its double": {[]error{rpctypes.ErrRoleAlreadyExist}, rpctypes.ErrRoleAlreadyExist},
	} {
		t.Run(name, func(t *testing.T) {
			calls := 0
			err := once(t.Context(), func() (any, error) { calls++; return nil, c.answers[calls-1] })
			require.ErrorIs(t, err, c.want)
			require.Len(t, c.answers, calls)
		})
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	err := once(ended, func() (any, error) { return nil, broken })
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, broken)
}
