package conformance

import (
	"context"
	"sync"
	"time"

	"github.com/elasticron/elasticron/registry"
)

// A witness is a client to which nothing is done. How long the service takes to answer it tells a service that gets no
// time to run, on a busy machine, from an adapter that is broken. A nil one has seen nothing.
type witness struct {
	every time.Duration // between an answer and the next question
	most  time.Duration // what an answer may take

	mu    sync.Mutex
	asked time.Time // what is not answered yet; zero: nothing
	late  []answer
}

// An answer came at an instant, so long after its question.
type answer struct {
	at   time.Time
	took time.Duration
}

// watchService has a witness ask until end, nil where that could tell nothing. Nobody may pause the service meanwhile.
// What the adapter does wrong to the witness is for the cases to find.
func watchService(h Harness) (w *witness, end func()) {
	if l, is := h.(LightHarness); is && l.Light() { // where the service stands still, so does this process
		return nil, func() {}
	}
	w = &witness{every: h.SessionTimeout() / 40, most: allowance(h)}
	ctx, cancel := context.WithCancel(context.Background())
	done, rec := make(chan struct{}), &recorder{}
	go func() {
		defer close(done)
		protect(rec, func() {
			store, err := h.Registry(ctx, rec).OpenStore(ctx)
			if err != nil {
				return
			}
			w.ask(ctx, store)
			ended, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			_ = store.Close(ended)
		})
		rec.cleanup()
	}()
	return w, sync.OnceFunc(func() {
		cancel()
		select {
		case <-done:
		case <-time.After(hungTime): // it does not heed its context
		}
	})
}

// ask asks until ctx ends. A question that fails is not answered.
func (w *witness) ask(ctx context.Context, store registry.Store) {
	for ctx.Err() == nil {
		w.mu.Lock()
		if w.asked.IsZero() {
			w.asked = time.Now()
		}
		w.mu.Unlock()
		if _, err := store.Get(ctx, "/conformance-witness"); err == nil {
			w.mu.Lock()
			if now := time.Now(); now.Sub(w.asked) > w.most {
				w.late = append(w.late, answer{now, now.Sub(w.asked)})
			}
			w.asked = time.Time{}
			w.mu.Unlock()
		}
		select {
		case <-time.After(w.every):
		case <-ctx.Done():
		}
	}
}

// longest is what an answer took that was waited for since an instant, where that was too long; else 0.
func (w *witness) longest(since time.Time) (took time.Duration) {
	if w == nil {
		return 0
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.asked.IsZero() {
		took = time.Since(w.asked)
	}
	for _, a := range w.late {
		if !a.at.Before(since) {
			took = max(took, a.took)
		}
	}
	if took <= w.most {
		return 0
	}
	return took
}
