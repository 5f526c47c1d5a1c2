package request

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// A Request asks for a run.
type Request struct {
	// Items are the sharding items that are to run; none are all.
	Items []int
	// Param is core.Shard.RequestParam of the run: UTF-8, at most MaxParam bytes.
	Param string
	// Refuse: an item that runs when the request is accepted answers Busy. Else it runs when it
	// has ended.
	Refuse bool
	// Within is how long it may take until the request is accepted, when nobody leads the job
	// for example; 0 is a minute, negative is any time.
	Within time.Duration
	// By says who asks, for people.
	By string
}

// MaxParam is how long a parameter may be.
const MaxParam = 64 << 10

// An Outcome is what became of an item.
type Outcome string

const (
	// Succeeded: it ran.
	Succeeded Outcome = "succeeded"
	// Failed: it ran, and returned an error or panicked.
	Failed Outcome = "failed"
	// Crashed: it began, and its end is not known: its instance died and failover is off or
	// did not help, or the result could not be written. It may have finished.
	Crashed Outcome = "crashed"
	// Busy: it ran when the request was accepted, which wanted no wait.
	Busy Outcome = "busy"
	// Disabled: an operator had disabled it.
	Disabled Outcome = "disabled"
	// Absent: its instance was away, paused, or on a disabled server, and no other may begin it
	// (JobConfig.StaticSharding).
	Absent Outcome = "absent"
	// Unmonitored: monitoring was switched off before it began.
	Unmonitored Outcome = "unmonitored"
	// Superseded: it had not ended when the sharding total count changed, and does not
	// exist any more.
	Superseded Outcome = "superseded"
)

// An Item is what became of one item.
type Item struct {
	// Item is the sharding item.
	Item int
	// Outcome is what became of it.
	Outcome Outcome
	// Text is its error's, with Failed.
	Text string
	// Instance is the id of the instance that ran it, "" where none did.
	Instance string
}

// A Result is what became of a request.
type Result struct {
	// ID is the request's.
	ID string
	// Number is core.Shard.Request of the run: it counts the runs of the job.
	Number int64
	// At is when the leader accepted it: core.Shard.Due of the run.
	At time.Time
	// Closed is when each item had its outcome.
	Closed time.Time
	// Items are those that were asked for, ascending.
	Items []Item
	// Problem is why nothing ran at all, "" otherwise.
	Problem string
}

// ErrExpired: the request was not accepted in time.
var ErrExpired = errors.New("the request has expired")

// Expired is the Problem of a request that was not accepted in time.
const Expired = "expired"

// An Error says what of a request did not succeed.
type Error struct{ Result Result }

// Err is nil when all items have succeeded, an *Error otherwise.
func (r Result) Err() error {
	if r.Problem == "" {
		all := true
		for _, it := range r.Items {
			all = all && it.Outcome == Succeeded
		}
		if all {
			return nil
		}
	}
	return &Error{r}
}

func (e *Error) Error() string {
	if e.Result.Problem != "" {
		return "request: nothing ran: " + e.Result.Problem
	}
	var b strings.Builder
	count := 0
	for _, it := range e.Result.Items {
		if it.Outcome == Succeeded {
			continue
		}
		if count++; count > 3 {
			continue
		}
		fmt.Fprintf(&b, "; item %d: %s", it.Item, it.Outcome)
		if it.Text != "" {
			b.WriteString(": " + it.Text)
		}
	}
	return fmt.Sprintf("request: %d of %d items did not succeed%s", count, len(e.Result.Items), b.String())
}

// Is reports whether target is ErrExpired and the request has.
func (e *Error) Is(target error) bool { return target == ErrExpired && e.Result.Problem == Expired }

// A KilledError is the cause of a run's context (context.Cause) that ends since somebody asked for
// it with admin.Kill, and the error of a run that returns for that reason.
type KilledError struct {
	// By says who asked, for people; "" where he did not say.
	By string
}

func (e *KilledError) Error() string {
	if e.By == "" {
		return "killed"
	}
	return "killed by " + e.By
}
