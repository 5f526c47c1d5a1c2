package core

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/elasticron/elasticron/core/event"
	"github.com/elasticron/elasticron/core/internal/firing"
	"github.com/elasticron/elasticron/core/internal/ownership"
	"github.com/elasticron/elasticron/core/internal/settings"
)

// A host is what a Shard can say to the scheduler that runs it.
type host struct{ job *job }

// shard is what a run of an item is told.
func (j *job) shard(set *settings.Settings, r *firing.Run) Shard {
	s := Shard{
		Job: j.name(), Item: r.Item, Total: r.Total, Epoch: r.Epoch, Param: set.ItemParams[r.Item],
		JobParam: set.Stored.JobParameter, Due: r.Due, Missed: r.Missed, Instance: r.Instance, Fence: r.Fence,
		Request: r.Request, RequestParam: r.Parameter, Source: SourceSchedule, Attempt: 1, Yield: r.Yield, host: &j.host,
	}
	switch {
	case r.Redo:
		s.Source, s.Lost, s.Attempt = SourceFailover, r.Lost, r.Tries+1
	case r.Request != 0 && !r.MadeUp:
		s.Source = SourceRequest
	case r.MadeUp:
		s.Source = SourceMisfire
	}
	s.TaskID = taskID(&s)
	return s
}

// taskID is ElasticJob's, whose five parts tools take apart; only ours differs from run
// to run.
func taskID(s *Shard) string {
	kind := "@-@READY@-@"
	if s.Source == SourceFailover {
		kind = "@-@FAILOVER@-@"
	}
	const most = 128
	b := append(make([]byte, 0, most), s.Job...)
	b = strconv.AppendInt(append(b, "@-@"...), int64(s.Item), 10)
	b = append(append(b, kind...), s.Instance...)
	b = strconv.AppendInt(append(b, '-'), int64(s.Epoch), 10)
	b = strconv.AppendInt(append(b, '-'), s.Due.UnixNano(), 36)
	return string(b)
}

// Ownership is the run's hold on its item, with which package offset commits. It is nil in a
// Shard that no scheduler made.
func (s Shard) Ownership() *ownership.Ownership { return s.own }

// Warn tells an event.Warning of the job. It does nothing in a Shard that no scheduler made.
func (s Shard) Warn(problem string, err error) {
	if s.host != nil {
		s.host.job.scheduler.emit(event.Warning{Job: s.Job, Problem: problem, Err: err})
	}
}

// Stuck tells an event.ItemStuck of this run, for links that bound how long a run may
// take. stack may be "". It does nothing in a Shard that no scheduler made.
func (s Shard) Stuck(running time.Duration, stack string) {
	if s.host != nil {
		s.host.job.scheduler.emit(event.ItemStuck{Job: s.Job, Epoch: s.Epoch, Item: s.Item, Due: s.Due, Running: running, Stack: stack})
	}
}

// DisableJob disables the job in its configuration in the registry: nothing of it begins on
// any instance until somebody enables it there. The reason is kept beside it, and State and
// the log show it. ctx bounds it, also while ctx is that of the run.
func (s Shard) DisableJob(ctx context.Context, reason string) error {
	if s.host == nil {
		return errors.New("core: disable job: no scheduler runs this item")
	}
	m := s.host.job.current()
	if m == nil {
		return fmt.Errorf("core: disable job %q: %w", s.Job, ErrSessionLost)
	}
	if err := m.Disable(ctx, reason); err != nil {
		return fmt.Errorf("core: disable job %q: %w", s.Job, err)
	}
	return nil
}
