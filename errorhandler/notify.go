package errorhandler

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// A Sender sends a text to people.
type Sender interface {
	Send(ctx context.Context, subject, text string, f Failure) error
}

// Notify is a handler that sends failures, at most perMinute in a minute and as many at once.
// The run fails as before. name is for the warning when nothing could be sent.
func Notify(name string, to Sender, perMinute int) Handler {
	return &notifier{name: name, to: to, limit: rate.NewLimiter(rate.Limit(float64(perMinute)/60), max(perMinute, 1))}
}

type notifier struct {
	name  string
	to    Sender
	limit *rate.Limiter

	mu   sync.Mutex
	left int // messages that were left out since the last one
}

// Handle implements Handler.
func (n *notifier) Handle(ctx context.Context, f Failure) error {
	left, ok := n.may()
	if !ok {
		return f.Err
	}
	text := f.Text()
	if left > 0 {
		text += fmt.Sprintf("\n%d more failures were not sent since the last message", left)
	}
	// The run's own context may be what has failed; the sender's timeouts bound it.
	if err := n.to.Send(context.WithoutCancel(ctx), "job "+f.Shard.Job+" failed", text, f); err != nil {
		f.Shard.Warn("the failure of a run could not be sent by "+n.name, err)
	}
	return f.Err
}

// may reports whether a message may be sent now, and how many were left out before.
func (n *notifier) may() (left int, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.limit.AllowN(time.Now(), 1) {
		n.left++
		return 0, false
	}
	left, n.left = n.left, 0
	return left, true
}
