package core

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The context of a call ends with it, and that is no lateness: a refusal would be taken for
// a time that was over.
func TestACallThatReturnsIsNotLate(t *testing.T) {
	c := calls{changed: func() {}}
	no := errors.New("by the test")
	for range 5_000 {
		require.True(t, c.take("BeforeAll", true))
		late, err := c.bounded(t.Context(), "BeforeAll", time.Minute, func(context.Context) error { return no })
		require.False(t, late)
		require.ErrorIs(t, err, no)
	}
	c.joined.Wait()
}

func TestACallThatLastsIsLate(t *testing.T) {
	c := calls{changed: func() {}}
	require.True(t, c.take("BeforeAll", true))
	until := make(chan struct{})
	late, err := c.bounded(t.Context(), "BeforeAll", time.Millisecond, func(context.Context) error { <-until; return nil })
	require.True(t, late)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.False(t, c.take("BeforeAll", true), "it is still under way")
	require.Equal(t, []string{"hello/BeforeAll"}, c.names("hello"))
	close(until)
	c.joined.Wait()
	require.Empty(t, c.names("hello"))
	require.True(t, c.take("BeforeAll", true))
}
