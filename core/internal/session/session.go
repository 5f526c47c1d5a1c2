package session

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/elasticron/elasticron/core/internal/settle"
	"github.com/elasticron/elasticron/core/internal/workqueue"
	"github.com/elasticron/elasticron/registry"
)

const (
	// controlTasks and recordTasks bound the requests that one process has under way:
	// for membership and leading, and for begins and ends.
	controlTasks = 256
	recordTasks  = 2048
	// callTasks bounds nothing: who waits for a function of the program must hold nobody up.
	callTasks = math.MaxInt
	// deniedPause is how long a refused target is left alone.
	deniedPause = time.Second
	// deniedWarn is how often it is told.
	deniedWarn = time.Minute
	// closeWait bounds how long the end of the session at the service is waited for.
	closeWait = 5 * time.Second
)

// A Session is open until End.
type Session struct {
	registry.Session
	// Context ends with the session; its cause is why.
	Context context.Context
	// Given is sent once why the session is to end, though it is not lost.
	Given chan error
	// Control and Records run tasks that make requests; Calls those that wait for the program's
	// own functions, any number of them.
	Control, Records, Calls *workqueue.Pool

	cancel  context.CancelCauseFunc
	warn    func(problem string, err error)
	joined  sync.WaitGroup
	handing sync.Mutex // while a handler is called

	mu       sync.Mutex
	watchers []*watching     // one at least
	growing  bool            // another is being opened
	over     bool            // End was called: nothing is opened any more
	selves   map[string]node // who watches a node, by its path
	dirs     map[string]*dir // who watches the children of one
	asking   bool            // for what was refused, after a while
	warned   time.Time
}

// Names are those of a node's children; none where it does not stand: whoever has deleted a directory has deleted what
// was in it.
func (s *Session) Names(ctx context.Context, path string) ([]string, error) {
	names, err := s.Children(ctx, path)
	if errors.Is(err, registry.ErrNotFound) {
		return nil, nil
	}
	return names, err
}

type handler func(registry.Event)

// A node is one that is watched.
type node struct {
	part   *Part
	handle handler
}

// A dir is a directory whose children are watched.
type dir struct {
	part   *Part
	handle handler
	list   list
}

// Open opens a session and follows it. warn is told of targets that cannot be watched.
func Open(ctx context.Context, reg registry.Registry, warn func(problem string, err error)) (*Session, error) {
	ses, err := reg.Open(ctx)
	if err != nil {
		return nil, fmt.Errorf("core: session: %w", err)
	}
	w, err := ses.Watch(ctx)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("core: session: %w", err), ses.Close(ctx))
	}
	s := &Session{
		Session: ses, warn: warn, Given: make(chan error, 1),
		selves: map[string]node{}, dirs: map[string]*dir{},
		Control: workqueue.NewPool(controlTasks), Records: workqueue.NewPool(recordTasks), Calls: workqueue.NewPool(callTasks),
	}
	s.Context, s.cancel = context.WithCancelCause(context.Background())
	s.attach(w)
	return s, nil
}

// follow hands events to whoever watches their target.
func (s *Session) follow(w registry.Watcher) {
	for {
		events, err := w.Next(s.Context)
		switch {
		case err == nil:
			var unsure []string
			for _, e := range events {
				if s.hand(w, e) {
					unsure = append(unsure, e.Path)
				}
			}
			s.relist(unsure)
		case s.Context.Err() != nil, s.Err() != nil, errors.Is(err, registry.ErrClosed):
			return // the session has ended, and its owner sees Done
		case errors.Is(err, registry.ErrDenied):
			s.denied(err)
		default:
			s.warn("watching failed; going on", err)
			settle.Pause(s.Context, deniedPause)
		}
	}
}

// hand hands an event of a watcher to its handler. It reports whether the children are to be listed once more.
func (s *Session) hand(w registry.Watcher, e registry.Event) (unsure bool) {
	s.handing.Lock()
	defer s.handing.Unlock()
	s.mu.Lock()
	var handle handler
	var gone []string
	// What a watcher tells of a target that has been given to another since is old.
	if e.Scope == registry.Self {
		if n := s.selves[e.Path]; n.part.hears(w) {
			handle = n.handle
		}
	} else if d := s.dirs[e.Path]; d != nil && d.part.hears(w) {
		handle = d.handle
		gone, unsure = d.list.note(e)
	}
	s.mu.Unlock()
	if handle == nil {
		return false
	}
	for _, child := range gone {
		handle(registry.Event{Path: e.Path, Scope: e.Scope, Node: registry.Node{Path: child}})
	}
	handle(e)
	return unsure
}

// relist has the children listed of which some may have gone unseen.
func (s *Session) relist(paths []string) {
	s.mu.Lock()
	defer s.mu.Unlock() // or a target would be added that Unfollow has removed
	for _, path := range paths {
		if d := s.dirs[path]; d != nil {
			d.list.begin()
			d.part.via.Remove(path, registry.Children)
			_ = d.part.via.Add(path, registry.Children) // as in addAgain
		}
	}
}

// denied asks for the refused target again, after a while. The error does not say which it
// is, and it may be one that was shown before: all are asked for, and those that are
// watched are left as they are.
func (s *Session) denied(err error) {
	s.mu.Lock()
	tell := time.Since(s.warned) >= deniedWarn
	if tell {
		s.warned = time.Now()
	}
	for _, d := range s.dirs {
		d.list.broken()
	}
	if !s.asking {
		s.asking = true
		s.joined.Go(s.addAgain)
	}
	s.mu.Unlock()
	if tell {
		s.warn("the registry does not let this instance watch a node that it needs; trying again", err)
	}
}

func (s *Session) addAgain() {
	if !settle.Pause(s.Context, deniedPause) {
		return
	}
	s.mu.Lock()
	s.asking = false
	selves, dirs := slices.Sorted(maps.Keys(s.selves)), slices.Sorted(maps.Keys(s.dirs))
	s.mu.Unlock()
	s.addAll(selves, registry.Self)
	s.addAll(dirs, registry.Children)
}

// addAll adds those of targets that are still followed.
func (s *Session) addAll(paths []string, scope registry.Scope) {
	for _, path := range paths {
		s.mu.Lock()
		if p := s.of(path, scope); p != nil {
			_ = p.via.Add(path, scope) // after the end of the session nobody needs it
		}
		s.mu.Unlock()
	}
}

// GiveUp asks for the end of the session, for a reason.
func (s *Session) GiveUp(why error) {
	select {
	case s.Given <- why:
	default: // it ends already
	}
}

// Cancel ends Context with a cause. What is under way fails soon.
func (s *Session) Cancel(cause error) { s.cancel(cause) }

// End joins every goroutine of the session and ends it at the service. Functions of
// items are not waited for.
func (s *Session) End(cause error) error {
	s.cancel(cause)
	s.Control.Close()
	s.Calls.Close()
	s.Records.Close()
	ctx, cancel := context.WithTimeout(context.Background(), closeWait)
	defer cancel()
	err := s.Close(ctx)
	s.mu.Lock()
	s.over = true
	watchers := s.watchers
	s.mu.Unlock()
	for _, w := range watchers {
		_ = w.Close() // it has ended with the session
	}
	s.joined.Wait()
	return err
}
