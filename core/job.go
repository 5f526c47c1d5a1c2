package core

import (
	"context"
	"time"

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
	// JobParam is the parameter of the whole job.
	JobParam string
	// Due is the instant at which the schedule wanted this fire. It identifies
	// the fire: all items of a fire carry the same on every instance.
	// With a fixed delay it belongs to the item alone.
	Due time.Time
	// Instance is the id of the instance that runs it.
	Instance string
	// Fence is the fencing token of this run: it rises strictly over all runs
	// of the item, whoever runs it. Give it to what the run writes to, and let
	// that refuse smaller ones. It is 0 when monitoring is off.
	Fence registry.Revision
}
