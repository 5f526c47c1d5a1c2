package core

import (
	"context"
	"time"

	"github.com/elasticron/elasticron/core/internal/ownership"
	"github.com/elasticron/elasticron/registry"
)

// A Job is the user's work, called once for each sharding item of each fire.
type Job interface {
	// Run does the work of one item. Calls for different items are concurrent;
	// two for one item never are, among live sessions. It must return soon after
	// ctx is cancelled; context.Cause(ctx) is then ErrStopped or wraps
	// ErrSessionLost. A returned error and a panic are told with event.ItemEnded
	// and change no later fire.
	Run(ctx context.Context, s Shard) error
}

// JobFunc makes a Job of a function.
type JobFunc func(ctx context.Context, s Shard) error

// Run calls f.
func (f JobFunc) Run(ctx context.Context, s Shard) error { return f(ctx, s) }

// A Shard is one sharding item of one fire.
type Shard struct {
	// Job is the name of the job.
	Job string
	// Item is the sharding item, from 0 to Total-1.
	Item int
	// Total is the sharding total count that Item belongs to.
	Total int
	// Epoch counts the changes of Total. Items of one number in two epochs are two items.
	Epoch int
	// Param is the item's own parameter, "" when none is configured.
	Param string
	// Request is the number of the run that somebody asked for, from 1; 0 is a fire of the
	// schedule. Due is then when the request was accepted.
	Request int64
	// RequestParam is the parameter of the request.
	RequestParam string
	// JobParam is the parameter of the whole job.
	JobParam string
	// Due is the instant at which the schedule wanted this fire. It identifies
	// the fire: all items of a fire carry the same on every instance.
	// With a fixed delay it belongs to the item alone.
	Due time.Time
	// Missed is how many earlier fires this one stands for: they were missed and do not run
	// for themselves (MisfireOnce). It is counted to ten thousand.
	Missed int
	// Instance is the id of the instance that runs it.
	Instance string
	// Fence is the fencing token of this run: it rises strictly over all runs
	// of the item, whoever runs it. Give it to what the run writes to, and let
	// that refuse smaller ones. It is 0 when monitoring is off.
	Fence registry.Revision
	// Source says why the item runs.
	Source Source
	// Lost is the id of the instance that died last of those that Attempt counts, "" where none did.
	Lost string
	// Attempt counts the attempts at this fire, from 1: each instance that died while it ran it, or
	// had begun it ahead (JobConfig.BeginAhead), is one. A link that calls the job again within the
	// same run counts on.
	Attempt int
	// TaskID names this run in ElasticJob's form, job@-@item@-@READY@-@ip@-@instance, where
	// the last part ends in epoch and fire, so that no two runs share one. Attempts of
	// one run do. With SourceFailover the third part is FAILOVER, as in ElasticJob's Cloud;
	// its Lite, which knows the word, says READY then too.
	TaskID string
	// Yield is closed when the leader wants the item back, or the scheduler stops: a long
	// run should then end at its next safe point. Nothing forces it to, and its context is
	// not cancelled by that. It is nil, never closed, in a Shard that no scheduler made.
	Yield <-chan struct{}

	host *host // nil in a Shard that no scheduler made
	own  *ownership.Ownership
}

// Source says why an item runs.
type Source string

const (
	// SourceSchedule: the fire is due.
	SourceSchedule Source = "schedule"
	// SourceMisfire: the fire is made up, since nobody ran it when it was due.
	SourceMisfire Source = "misfire"
	// SourceFailover: the instance that ran it died.
	SourceFailover Source = "failover"
	// SourceRequest: somebody asked for it.
	SourceRequest Source = "request"
)
