package share_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/registry/internal/lifetime"
	"github.com/elasticron/elasticron/registry/internal/share"
)

var errUnknown = errors.New("unknown")

// A service answers requests of numbers once it is told to: to each its square.
type service struct {
	*share.Queue[int, int]

	life     *lifetime.Lifetime
	heal     chan struct{}
	requests chan string
	most     int  // commits in a request
	looks    int  // how often it was asked whether one has room
	refuses  bool // what is shared
	err      error
}

func start() *service {
	s := &service{most: 3, life: lifetime.New("test"), heal: make(chan struct{}), requests: make(chan string, 1000)}
	s.Queue = share.New(share.Config[int, int]{
		Life: s.life,
		Alone: func(ctx context.Context, q int) (int, error) {
			s.requests <- fmt.Sprint(q)
			select {
			case <-s.heal:
				return q * q, nil
			case <-ctx.Done():
				return 0, ctx.Err()
			case <-s.life.Done():
				return 0, s.life.Err()
			}
		},
		Together: func(all []int) ([]int, bool, error) {
			s.requests <- fmt.Sprint(all)
			<-s.heal
			squares := make([]int, len(all))
			for i, q := range all {
				squares[i] = q * q
			}
			return squares, s.refuses, s.err
		},
		Room: func() func(int) bool {
			n := 0
			return func(q int) bool { n++; s.looks++; return n <= s.most && q < 1000 }
		},
		Unknown: func(context.Context) error { return errUnknown },
	})
	return s
}

type outcome struct {
	answer int
	err    error
}

func (s *service) do(ctx context.Context, q int) (become func() outcome) {
	c := make(chan outcome, 1)
	go func() {
		answer, err := s.Do(ctx, q)
		c <- outcome{answer, err}
	}()
	synctest.Wait()
	return func() outcome { return <-c }
}

// full starts as many as are sent one by one.
func (s *service) full(ctx context.Context) (all []func() outcome) {
	for range share.MaxUnderWay {
		all = append(all, s.do(ctx, 100))
		<-s.requests
	}
	return all
}

// sent are the requests since it was called last.
func (s *service) sent() (all []string) {
	synctest.Wait()
	for len(s.requests) > 0 {
		all = append(all, <-s.requests)
	}
	return all
}

func bubble(t *testing.T, test func(t *testing.T, s *service, ctx context.Context)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := start()
		test(t, s, t.Context())
		s.life.Lose(lifetime.ErrClosed)
		s.life.Wait()
	})
}

func TestWhatWaitsGoesTogether(t *testing.T) {
	bubble(t, func(t *testing.T, s *service, ctx context.Context) {
		first := s.full(ctx)
		var all []func() outcome
		for q := range 4 {
			all = append(all, s.do(ctx, q))
		}
		require.Equal(t, 4, s.Waiting())
		require.Empty(t, s.sent())
		large := s.do(ctx, 1000)
		require.Equal(t, []string{"1000"}, s.sent(), "for which there is no room, whatever comes")
		close(s.heal)
		for q, become := range all {
			require.Equal(t, outcome{answer: q * q}, become())
		}
		require.ElementsMatch(t, []string{"[0 1 2]", "3"}, s.sent())
		require.Equal(t, outcome{answer: 1_000_000}, large())
		for _, become := range first {
			require.Equal(t, outcome{answer: 10_000}, become())
		}
	})
}

// A request that has room left goes when few are under way, or soon.
func TestARequestFillsUp(t *testing.T) {
	bubble(t, func(t *testing.T, s *service, ctx context.Context) {
		s.full(ctx)
		s.do(ctx, 1)
		begun := time.Now()
		s.heal <- struct{}{}
		s.do(ctx, 2)
		require.Empty(t, s.sent(), "there is room left")
		s.do(ctx, 3)
		s.do(ctx, 4)
		require.Equal(t, []string{"[1 2 3]"}, s.sent(), "it is full")
		require.Zero(t, time.Since(begun))
		s.heal <- struct{}{}
		require.Empty(t, s.sent())
		<-time.After(4 * time.Millisecond)
		require.Empty(t, s.sent())
		<-time.After(time.Millisecond)
		require.Equal(t, []string{"4"}, s.sent(), "it has waited")

		s.do(ctx, 5)
		require.Empty(t, s.sent())
		for range share.MaxUnderWay - 1 {
			require.Empty(t, s.sent())
			s.heal <- struct{}{}
		}
		require.Equal(t, []string{"5"}, s.sent(), "few are under way")
		require.Less(t, time.Since(begun), 6*time.Millisecond)
		close(s.heal)
	})
}

// What comes looks at the request that grows, not at all of those who wait.
func TestAGrowingRequestIsLookedAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, s *service, ctx context.Context) {
		s.most = 1000
		s.full(ctx)
		s.do(ctx, 1)
		s.heal <- struct{}{}
		synctest.Wait()
		s.looks = 0
		for q := range 100 {
			go func() { _, _ = s.Do(ctx, q) }()
		}
		synctest.Wait()
		require.Equal(t, 101, s.Waiting())
		require.LessOrEqual(t, s.looks, 2*100, "one by itself, one in the request")
		<-time.After(5 * time.Millisecond)
		require.Len(t, s.sent(), 1)
		close(s.heal)
	})
}

func TestRefusedTogetherGoAlone(t *testing.T) {
	bubble(t, func(t *testing.T, s *service, ctx context.Context) {
		s.refuses = true
		s.full(ctx)
		a, b := s.do(ctx, 1), s.do(ctx, 2)
		close(s.heal)
		require.Equal(t, outcome{answer: 1}, a())
		require.Equal(t, outcome{answer: 4}, b())
		require.ElementsMatch(t, []string{"[1 2]", "1", "2"}, s.sent())

		s.heal = make(chan struct{}) // from now on nothing is shared for a while
		s.full(ctx)
		c := s.do(ctx, 3)
		require.Equal(t, []string{"3"}, s.sent())
		close(s.heal)
		require.Equal(t, outcome{answer: 9}, c())
	})
}

func TestFailedTogether(t *testing.T) {
	bubble(t, func(t *testing.T, s *service, ctx context.Context) {
		s.err = errors.New("broken")
		s.full(ctx)
		a, b := s.do(ctx, 1), s.do(ctx, 2)
		close(s.heal)
		require.Equal(t, outcome{err: s.err}, a())
		require.Equal(t, outcome{err: s.err}, b())
	})
}

func TestLeaving(t *testing.T) {
	bubble(t, func(t *testing.T, s *service, ctx context.Context) {
		s.full(ctx)
		leaving, leave := context.WithCancel(ctx)
		left, stays := s.do(leaving, 1), s.do(ctx, 2)
		leave()
		require.Equal(t, outcome{err: context.Canceled}, left(), "nothing was sent")
		require.Equal(t, 1, s.Waiting())
		leaving, leave = context.WithCancel(ctx)
		left = s.do(leaving, 3)
		s.heal <- struct{}{} // one of the first is answered
		<-time.After(time.Second)
		require.Equal(t, []string{"[2 3]"}, s.sent())
		leave()
		require.Equal(t, outcome{err: errUnknown}, left())

		leaving, leave = context.WithCancel(ctx)
		alone := s.do(leaving, 4)
		s.life.Go(func() { s.heal <- struct{}{} })
		<-time.After(time.Second)
		require.Equal(t, []string{"4"}, s.sent())
		leave()
		require.Equal(t, outcome{err: context.Canceled}, alone(), "who was sent alone knows")
		close(s.heal)
		require.Equal(t, outcome{answer: 4}, stays())
	})
}

func TestLeavingWithAReason(t *testing.T) {
	bubble(t, func(t *testing.T, s *service, ctx context.Context) {
		s.Left = func(ctx context.Context) error { return errors.Join(errUnknown, ctx.Err()) }
		s.full(ctx)
		leaving, leave := context.WithCancel(ctx)
		left := s.do(leaving, 1)
		leave()
		err := left().err
		require.ErrorIs(t, err, errUnknown)
		require.ErrorIs(t, err, context.Canceled)
	})
}

func TestTheEndOfTheSession(t *testing.T) {
	bubble(t, func(t *testing.T, s *service, ctx context.Context) {
		first := s.full(ctx)
		waits := s.do(ctx, 1)
		s.life.Lose(lifetime.ErrClosed)
		require.Equal(t, outcome{err: s.life.Err()}, waits())
		for _, become := range first {
			require.Equal(t, outcome{err: s.life.Err()}, become())
		}
		require.Zero(t, s.Waiting())
	})
}
