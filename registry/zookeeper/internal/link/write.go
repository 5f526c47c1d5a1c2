package link

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/go-zookeeper/zk"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/internal/share"
)

// A Written is what the service says of a write.
type Written struct {
	// Results has one for each request. When the server has refused, the first that has
	// an error names the failure; there are none when it refused the whole.
	Results []zk.MultiResponse
	// Zxid is the number of the transaction, 0 when there was none.
	Zxid int64
}

// Multi applies requests, all or none: *zk.CreateRequest, *zk.SetDataRequest, *zk.DeleteRequest and
// *zk.CheckVersionRequest. Calls that come while others are under way may share a multi with each other; nothing but
// its speed, and a Zxid that is theirs together, tells them of that.
//
// An error is the server's, or wraps registry.ErrSessionLost alone or ErrUnavailable or
// the context's own (never sent), ErrInvalid (too large to be), or ErrUncertain, also with ErrSessionLost. The requests
// and their values must not be changed any more, whatever is returned.
func (l *Link) Multi(ctx context.Context, requests ...any) (Written, error) {
	if n := size(requests); n >= MaxRequest {
		return Written{}, fmt.Errorf("zookeeper: %w: a request of about %d bytes, less than %d fit",
			registry.ErrInvalid, n, MaxRequest)
	}
	if err := l.Alive(ctx); err != nil {
		return Written{}, err
	}
	if err := l.await(ctx); err != nil {
		return Written{}, err
	}
	return l.writes.Do(ctx, requests)
}

// MultiAlone is a Multi that shares nothing. settled is closed once it is answered, or
// never will be carried out, however long ago its caller has left.
func (l *Link) MultiAlone(ctx context.Context, requests ...any) (w Written, settled <-chan struct{}, err error) {
	over := make(chan struct{})
	if err := l.await(ctx); err != nil {
		close(over)
		return Written{}, over, err
	}
	results, err := within(ctx, l, func() ([]zk.MultiResponse, error) {
		defer close(over)
		return l.write(requests)
	})
	if errors.Is(err, errNotBegun) {
		close(over)
		return Written{}, over, l.Err()
	}
	w, err = l.judge(ctx, results, err)
	return w, over, err
}

// write sends a set or create that is alone as what it is: a multi of one takes longer (BenchmarkRegistry). A create
// whose path the service completes stays a multi: its path is asked for, and withNumber would lose it.
func (l *Link) write(requests []any) ([]zk.MultiResponse, error) {
	if len(requests) == 1 {
		switch r := requests[0].(type) {
		case *zk.SetDataRequest:
			return single(l.zk.Set(r.Path, r.Data, r.Version))
		case *zk.CreateRequest:
			if r.Flags&zk.FlagSequence != 0 {
				break
			}
			number, err := l.zk.Create(r.Path, r.Data, r.Flags, r.Acl)
			stat := &zk.Stat{}
			stat.Mzxid, _ = strconv.ParseInt(number, 10, 64)
			return single(stat, err)
		}
	}
	return l.zk.Multi(requests...)
}

// single makes what a multi of one would return of the answer to one request.
func single(stat *zk.Stat, err error) ([]zk.MultiResponse, error) {
	return []zk.MultiResponse{{Error: err}, {Stat: stat}}, err
}

// judge makes what the client says of a multi what Multi says.
func (l *Link) judge(ctx context.Context, results []zk.MultiResponse, err error) (Written, error) {
	switch last := len(results) - 1; {
	case err == nil && last >= 0 && results[last].Stat != nil: // see withRevision
		return Written{Results: results[:last:last], Zxid: results[last].Stat.Mzxid}, nil
	case err == nil:
		err = errMalformed
	case answered(err):
		return Written{Results: results}, err
	case errors.Is(err, errLeft):
		err = ctx.Err()
	case errors.Is(err, errLost):
		err = nil
	}
	return Written{}, l.uncertain(err)
}

// uncertain says that a write left and no answer came, and what ended the wait.
func (l *Link) uncertain(err error) error {
	switch lost := l.Err(); {
	case lost == nil:
		return fmt.Errorf("zookeeper: %w: %w", registry.ErrUncertain, err)
	case err == nil:
		return fmt.Errorf("zookeeper: %w: %w", registry.ErrUncertain, lost)
	default:
		return fmt.Errorf("zookeeper: %w: %w (%w)", registry.ErrUncertain, lost, err)
	}
}

const (
	// A multi that is shared grows no larger than this: it holds up what comes after it.
	maxShared      = 512
	maxSharedBytes = 64 << 10
	// perRequest is about what the wire adds to a path and a value.
	perRequest = 64
)

func (l *Link) sharing() share.Config[[]any, Written] {
	return share.Config[[]any, Written]{
		Life: l.Lifetime, Alone: l.alone, Together: l.together, Room: room,
		Unknown: func(ctx context.Context) error { return l.uncertain(ctx.Err()) },
	}
}

// room begins a multi of at least two calls.
func room() func([]any) bool {
	n, requests, bytes := 0, 0, 0
	return func(more []any) bool {
		n, requests, bytes = n+1, requests+len(more), bytes+size(more)
		return requests <= maxShared && bytes <= maxSharedBytes && (n > 1 || 2*bytes <= maxSharedBytes)
	}
}

// size is about that of a request on the wire.
func size(requests []any) int {
	n := len(requests) * perRequest
	for _, r := range requests {
		switch r := r.(type) {
		case *zk.CreateRequest:
			n += len(r.Path) + len(r.Data)
		case *zk.SetDataRequest:
			n += len(r.Path) + len(r.Data)
		case *zk.DeleteRequest:
			n += len(r.Path)
		case *zk.CheckVersionRequest:
			n += len(r.Path)
		}
	}
	return n
}

func (l *Link) alone(ctx context.Context, requests []any) (Written, error) {
	w, _, err := l.MultiAlone(ctx, requests...)
	return w, err
}

// together sends what calls have in one multi. What it refuses it has not done.
func (l *Link) together(all [][]any) (answers []Written, refused bool, err error) {
	var requests []any
	for _, own := range all {
		requests = append(requests, own...)
	}
	w, err := l.alone(l.Context(), requests)
	if err != nil {
		return nil, answered(err), err
	}
	for _, own := range all {
		n := len(own)
		answers = append(answers, Written{Results: w.Results[:n:n], Zxid: w.Zxid})
		w.Results = w.Results[n:]
	}
	return answers, false, nil
}
