package link

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A server that is alone and comes back is dialled again within T/16, so that a restart costs no session
// that could have outlived it.
func TestPausesEndWithinASixteenthOfTheSession(t *testing.T) {
	for _, c := range []struct{ session, longest time.Duration }{
		{100 * time.Millisecond, firstPause},
		{2 * time.Second, 125 * time.Millisecond},
		{4 * time.Second, 250 * time.Millisecond},
		{time.Minute, 250 * time.Millisecond},
	} {
		t.Run(c.session.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServers(Config{
					Servers: []string{"127.0.0.1:2181"}, SessionTimeout: c.session,
					Dial: func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("refused") },
				})
				var longest time.Duration
				for range 20 {
					before := time.Now()
					_, err := s.dial(t.Context(), "127.0.0.1:2181", time.Second)
					require.Error(t, err)
					longest = max(longest, time.Since(before))
				}
				require.Equal(t, c.longest, longest)
			})
		})
	}
}
