package admin

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/elasticron/elasticron/internal/layout"
	"github.com/elasticron/elasticron/registry"
)

var (
	// ErrNoJob: the namespace has no job of this name.
	ErrNoJob = errors.New("no such job")
	// ErrNoItem: the job has no item of this number.
	ErrNoItem = errors.New("no such sharding item")
	// ErrChanged: somebody else has changed it since it was read.
	ErrChanged = errors.New("changed by somebody else meanwhile")
	// ErrInUse is matched by every *InUseError.
	ErrInUse = errors.New("in use by live instances")
)

// An InUseError names the instances that are in the way.
type InUseError struct {
	// What is what cannot be removed.
	What string
	// Instances are the ids.
	Instances []string
}

func (e *InUseError) Error() string {
	return fmt.Sprintf("%s is in use by %s; shut them down first", e.What, strings.Join(e.Instances, ", "))
}

// Is reports whether target is ErrInUse.
func (e *InUseError) Is(target error) bool { return target == ErrInUse }

// An Admin looks at the jobs of one namespace and steers them.
type Admin struct {
	store     registry.Store
	namespace string
	now       func() time.Time
}

// An Option changes how an Admin behaves.
type Option func(*Admin)

// WithClock replaces the clock, which tells next fires and ages.
func WithClock(now func() time.Time) Option { return func(a *Admin) { a.now = now } }

// New returns an Admin of a namespace, as registry.Registry.Namespace names it. The store
// stays the caller's.
func New(store registry.Store, namespace string, opts ...Option) (*Admin, error) {
	if err := layout.ValidateNamespace(namespace); err != nil {
		return nil, err
	}
	a := &Admin{store: store, namespace: namespace, now: time.Now}
	for _, o := range opts {
		o(a)
	}
	return a, nil
}

// Names lists the jobs, sorted: what stands in the namespace and has a configuration.
func (a *Admin) Names(ctx context.Context) ([]string, error) {
	if err := a.store.Sync(ctx); err != nil {
		return nil, failed("list jobs", "", err)
	}
	names, err := a.names(ctx)
	return names, failed("list jobs", "", err)
}

func (a *Admin) names(ctx context.Context) ([]string, error) {
	children, err := children(ctx, a.store, "/"+a.namespace)
	if err != nil {
		return nil, err
	}
	var names, paths []string
	for _, name := range children {
		if j, err := layout.New(a.namespace, name); err == nil {
			names, paths = append(names, name), append(paths, j.Config())
		}
	}
	nodes, err := a.store.Get(ctx, paths...)
	if err != nil {
		return nil, err
	}
	jobs := names[:0]
	for i, n := range nodes {
		if n.Exists() {
			jobs = append(jobs, names[i])
		}
	}
	return jobs, nil
}

// children lists a directory; one that does not exist has none.
func children(ctx context.Context, s registry.Store, path string) ([]string, error) {
	names, err := s.Children(ctx, path)
	if errors.Is(err, registry.ErrNotFound) {
		return nil, nil
	}
	return names, err
}

// job returns the layout of a job that exists.
func (a *Admin) job(ctx context.Context, name string) (layout.Job, error) {
	j, err := layout.New(a.namespace, name)
	if err != nil {
		return j, err
	}
	if err := a.store.Sync(ctx); err != nil {
		return j, err
	}
	nodes, err := a.store.Get(ctx, j.Config())
	if err == nil && !nodes[0].Exists() {
		err = ErrNoJob
	}
	return j, err
}

// failed wraps an error once, with what was to be done. Errors that say all are left.
func failed(what, job string, err error) error {
	switch {
	case err == nil:
		return nil
	case job != "" && !strings.HasPrefix(err.Error(), fmt.Sprintf("job %q: ", job)): // as a *core.ConfigError does
		return fmt.Errorf("admin: %s: job %q: %w", what, job, err)
	}
	return fmt.Errorf("admin: %s: %w", what, err)
}
