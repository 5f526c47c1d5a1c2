package admin

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"path"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/elasticron/elasticron/core/request"
	"github.com/elasticron/elasticron/internal/field"
	"github.com/elasticron/elasticron/internal/layout"
	"github.com/elasticron/elasticron/internal/layout/ledger"
	"github.com/elasticron/elasticron/registry"
)

// ErrNoRequest: the job knows no request of this id. What became of one is kept for ten
// minutes.
var ErrNoRequest = errors.New("no such request")

// acceptedWithin is how long a request stands by default until it is accepted.
const acceptedWithin = time.Minute

// Trigger asks for a run of a job's items now, beside its schedule, and returns the id of the
// request. It waits for nothing: Await does.
func (a *Admin) Trigger(ctx context.Context, job string, r request.Request) (id string, err error) {
	id, err = a.trigger(ctx, job, r)
	return id, failed("trigger", job, err)
}

func (a *Admin) trigger(ctx context.Context, job string, r request.Request) (string, error) {
	j, err := a.job(ctx, job)
	if err != nil {
		return "", err
	}
	if len(r.Param) > request.MaxParam {
		return "", field.Errorf("Param", "has %d bytes, at most %d fit", len(r.Param), request.MaxParam)
	}
	if !utf8.ValidString(r.Param) {
		return "", field.Errorf("Param", "is not UTF-8; encode it")
	}
	asked := layout.Request{Parameter: r.Param, Refuse: r.Refuse, By: r.By}
	if len(r.Items) > 0 {
		items := slices.Clone(r.Items)
		slices.Sort(items)
		items = slices.Compact(items)
		if items[0] < 0 {
			return "", ErrNoItem
		}
		asked.Items = ledger.FormatRange(items)
	}
	switch {
	case r.Within == 0:
		asked.Within = acceptedWithin
	case r.Within > 0:
		asked.Within = r.Within
	}
	if asked.Within > 0 {
		asked.Expires = a.now().Add(asked.Within)
	}
	id := newID()
	return id, a.edit(ctx, func(ctx context.Context) ([]registry.Op, error) {
		// A commit whose answer was lost may have been answered already.
		at, err := a.findRequest(ctx, j, id)
		if err != nil || at.waits || at.run != nil {
			return nil, err
		}
		if !at.stands {
			if err := registry.EnsurePath(ctx, a.store, j.InForce()); err != nil {
				return nil, err
			}
		}
		return []registry.Op{registry.Create(j.Request(id), layout.MarshalRequest(asked))}, nil
	})
}

// newID is the name of a node that nobody else makes.
func newID() string {
	var random [10]byte
	_, _ = rand.Read(random[:]) // it never fails
	return hex.EncodeToString(random[:])
}

// A found is where a request is.
type found struct {
	stands bool        // the directory does
	waits  bool        // for being accepted
	run    *layout.Run // it was
}

func (a *Admin) findRequest(ctx context.Context, j layout.Job, id string) (f found, err error) {
	names, err := a.store.Children(ctx, j.InForce())
	if errors.Is(err, registry.ErrNotFound) {
		return f, nil
	}
	f.stands = true
	paths := []string{j.Request(id)}
	for _, name := range names {
		if n, is := layout.RunNumber(name); is {
			paths = append(paths, j.Run(n))
		}
	}
	if err != nil {
		return f, err
	}
	nodes, err := a.store.Get(ctx, paths...)
	if err != nil {
		return f, err
	}
	f.waits = nodes[0].Exists()
	for _, n := range nodes[1:] {
		if r, err := layout.UnmarshalRun(n.Value); err == nil && r.Request == id {
			f.run = &r
		}
	}
	return f, nil
}

// Await waits until each item of a request has its outcome, or ctx ends. It costs a watch.
// What did not succeed is no error of Await: Result.Err says so.
func (a *Admin) Await(ctx context.Context, job, id string) (request.Result, error) {
	r, err := a.await(ctx, job, id)
	return r, failed("await request "+id, job, err)
}

func (a *Admin) await(ctx context.Context, job, id string) (request.Result, error) {
	j, err := a.job(ctx, job)
	if err != nil {
		return request.Result{}, err
	}
	w, err := a.store.Watch(ctx)
	if err != nil {
		return request.Result{}, err
	}
	defer func() { _ = w.Close() }()
	if err := w.Add(j.InForce(), registry.Children); err != nil {
		return request.Result{}, err
	}
	seen, synced := found{}, false
	for {
		events, err := w.Next(ctx)
		if err != nil {
			return request.Result{}, err
		}
		for _, e := range events {
			synced = synced || e.Synced
			seen.see(e.Node, id)
		}
		if synced && !seen.waits && seen.run == nil { // accepted in between, or unknown
			if err := a.store.Sync(ctx); err != nil {
				return request.Result{}, err
			}
			f, err := a.findRequest(ctx, j, id)
			if err != nil {
				return request.Result{}, err
			}
			if !f.waits && f.run == nil {
				return request.Result{}, ErrNoRequest
			}
			seen = f
		}
		if seen.run != nil && !seen.run.Closed.IsZero() {
			return a.result(ctx, j, seen.run)
		}
	}
}

// see takes a node into account.
func (f *found) see(n registry.Node, id string) {
	name := path.Base(n.Path)
	if own, is := layout.RequestID(name); is && own == id {
		f.waits = n.Exists()
	}
	if _, is := layout.RunNumber(name); !is || !n.Exists() {
		return
	}
	if r, err := layout.UnmarshalRun(n.Value); err == nil && r.Request == id {
		f.run = &r
	}
}

// result reads what became of a run that is closed.
func (a *Admin) result(ctx context.Context, j layout.Job, r *layout.Run) (request.Result, error) {
	result := request.Result{ID: r.Request, Number: r.Number, At: r.At, Closed: r.Closed, Problem: r.Problem}
	if r.Problem != "" {
		return result, nil
	}
	names, err := children(ctx, a.store, j.RunResults(r.Number))
	if err != nil {
		return result, err
	}
	paths := make([]string, len(names))
	for i, name := range names {
		paths[i] = j.RunResult(r.Number, name)
	}
	nodes, err := a.store.Get(ctx, paths...)
	if err != nil {
		return result, err
	}
	ended := map[int]request.Item{}
	book := func(answers []layout.Answer, instance string) {
		for _, x := range answers {
			of, _ := ledger.ParseRange(x.Items, r.Total)
			for _, n := range of {
				ended[n] = request.Item{Item: n, Outcome: request.Outcome(x.Outcome), Text: x.Text, Instance: instance}
			}
		}
	}
	book(r.Answers, "")
	for i, n := range nodes {
		if told, err := layout.UnmarshalResults(n.Value); err == nil {
			book(told.Results, names[i])
		}
	}
	items, err := ledger.ParseRange(r.Items, r.Total)
	if err != nil {
		return result, fmt.Errorf("%s: %w", j.Run(r.Number), err)
	}
	for _, n := range items {
		it, known := ended[n]
		if !known {
			it = request.Item{Item: n, Outcome: request.Crashed}
		}
		result.Items = append(result.Items, it)
	}
	return result, nil
}
