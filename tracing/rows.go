package tracing

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/elasticron/elasticron/core"
	"github.com/elasticron/elasticron/core/event"
)

// maxText is what ElasticJob's columns for messages hold, in characters.
const maxText = 4000

// An Execution is a row of JOB_EXECUTION_LOG: one run of one item.
type Execution struct {
	// ID is a UUID, the same at the begin and at the end.
	ID string
	// Job is the name of the job, TaskID core.Shard.TaskID.
	Job, TaskID string
	// HostName and IP are where it runs.
	HostName, IP string
	// Item is the sharding item.
	Item int
	// Source is ElasticJob's word for why it runs: NORMAL_TRIGGER, MISFIRE or FAILOVER.
	Source string
	// FailureCause is the error, with the stack of a panic; "" while it runs, and when it
	// succeeded. It has 4,000 characters at most.
	FailureCause string
	// Success is set once it has succeeded.
	Success bool
	// Began is start_time, Ended complete_time, zero while it runs.
	Began, Ended time.Time
	// Run is all that is known of it, with the fire, the epoch and the fencing token.
	Run event.Run
}

// A State is what became of the items of a fire on one instance, in ElasticJob's words.
type State string

const (
	// TaskStaging: they have begun.
	TaskStaging State = "TASK_STAGING"
	// TaskRunning: they are handed to their functions.
	TaskRunning State = "TASK_RUNNING"
	// TaskFinished: they have ended, or what they missed is made up by a later run.
	TaskFinished State = "TASK_FINISHED"
	// TaskError: some have failed.
	TaskError State = "TASK_ERROR"
	// TaskDropped: they were skipped.
	TaskDropped State = "TASK_DROPPED"
	// TaskLost: their instance died.
	TaskLost State = "TASK_LOST"
)

// A Status is a row of JOB_STATUS_TRACE_LOG: a step in the life of a fire's items on one instance.
type Status struct {
	// ID is a UUID.
	ID string
	// Job is the name of the job.
	Job string
	// TaskID names the fire's items on the instance, in the form of core.Shard.TaskID; the rows of
	// one fire share it. OriginalTaskID is the same: ElasticJob looks it up.
	TaskID, OriginalTaskID string
	// SlaveID is the address of the instance.
	SlaveID string
	// ExecutionType is READY, as ElasticJob's always is.
	ExecutionType string
	// Items are the sharding items, ascending.
	Items []int
	// State says what became of them.
	State State
	// Message may say more. It has 4,000 characters at most.
	Message string
	// At is creation_time.
	At time.Time
}

// space is where the UUIDs of executions come from.
var space = uuid.NewSHA1(uuid.NameSpaceURL, []byte("https://github.com/elasticron/elasticron/tracing"))

func execution(r event.Run, host string) Execution {
	x := Execution{
		ID: uuid.NewSHA1(space, []byte(r.TaskID)).String(), Job: r.Job, TaskID: r.TaskID, HostName: host, IP: address(r.Instance),
		Item: r.Item, Source: "NORMAL_TRIGGER", Began: r.Began, Ended: r.Ended, Run: r,
	}
	switch core.Source(r.Source) {
	case core.SourceMisfire:
		x.Source = "MISFIRE"
	case core.SourceFailover:
		x.Source = "FAILOVER"
	case core.SourceSchedule, core.SourceRequest:
	}
	if !r.Ended.IsZero() {
		x.Success, x.FailureCause = r.Err == nil, cause(r.Err)
	}
	return x
}

// cause is an error as people look for it.
func cause(err error) string {
	if err == nil {
		return ""
	}
	text := err.Error()
	if p := (*core.PanicError)(nil); errors.As(err, &p) {
		text += "\n" + string(p.Stack)
	}
	return clip(text)
}

func clip(text string) string {
	if len(text) <= maxText {
		return text
	}
	if cut := []rune(text); len(cut) > maxText {
		return string(cut[:maxText])
	}
	return text
}

// address is the IP of an instance's id.
func address(instance string) string {
	ip, _, _ := strings.Cut(instance, "@-@")
	return ip
}

// statuses are the rows of an event.
func statuses(e event.Event) []Status {
	switch e := e.(type) {
	case event.FireBegun:
		begun := status(e.Job, e.Instance, e.Epoch, e.Items, e.Due, TaskStaging, fmt.Sprintf("Job '%s' execute begin.", e.Job))
		running := begun
		running.ID, running.State, running.Message = uuid.NewString(), TaskRunning, ""
		return []Status{begun, running}
	case event.FireEnded:
		if e.Failed > 0 {
			return []Status{status(e.Job, e.Instance, e.Epoch, e.Items, e.Due, TaskError, failures(e.Errs))}
		}
		return []Status{status(e.Job, e.Instance, e.Epoch, e.Items, e.Due, TaskFinished, "")}
	case event.ItemsFolded:
		return []Status{status(e.Job, e.Instance, e.Epoch, e.Items, e.Last, TaskFinished,
			fmt.Sprintf("%d missed fires since %s; the one of %s runs for them", e.Count, e.First.Format(time.RFC3339), e.Into.Format(time.RFC3339)))}
	case event.ItemsSkipped:
		return []Status{status(e.Job, e.Instance, e.Epoch, e.Items, e.Due, TaskDropped,
			strings.TrimSpace(fmt.Sprintf("%d fires since %s: %s %s", e.Count, e.First.Format(time.RFC3339), e.Reason, e.Detail)))}
	case event.ItemCut:
		return []Status{status(e.Job, e.Instance, e.Epoch, []int{e.Item}, e.Due, TaskLost, "the instance died while it ran")}
	}
	return nil
}

func status(job, instance string, epoch int, items []int, due time.Time, state State, message string) Status {
	numbers := make([]string, len(items))
	for i, n := range items {
		numbers[i] = strconv.Itoa(n)
	}
	task := strings.Join([]string{
		job, strings.Join(numbers, ","), "READY", instance + "-" + strconv.Itoa(epoch) + "-" + strconv.FormatInt(due.UnixNano(), 36),
	}, "@-@")
	return Status{
		ID: uuid.NewString(), Job: job, TaskID: task, OriginalTaskID: task, SlaveID: address(instance), ExecutionType: "READY",
		Items: slices.Clone(items), State: state, Message: clip(message), At: time.Now(),
	}
}

// failures are the errors of items, as ElasticJob writes them.
func failures(errs map[int]error) string {
	var b strings.Builder
	for i, n := range slices.Sorted(maps.Keys(errs)) {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%d=%s", n, cause(errs[n]))
		if b.Len() > 4*maxText { // clip cuts it
			break
		}
	}
	return "{" + b.String() + "}"
}
