package main

import (
	"bytes"
	"context"
	"time"
)

// A companion is a step that is made beside others. What it prints is kept until it is joined.
type companion struct {
	step   *step
	cancel context.CancelFunc
	ended  chan struct{}

	// After ended.
	printed bytes.Buffer
	o       outcome
	took    time.Duration
}

// accompany starts a step beside others; join waits for it.
func (p program) accompany(name string) *companion {
	ctx, cancel := context.WithCancel(context.Background())
	c := &companion{cancel: cancel, ended: make(chan struct{})}
	p.out = &c.printed
	c.step = &step{program: p, name: name, idle: true}
	go func() {
		defer close(c.ended)
		c.o, c.took = c.step.run(ctx)
	}()
	return c
}

// join waits for the end of the step, says so meanwhile, and prints what it printed. It returns how long
// it was waited for.
func (c *companion) join(p program) (o outcome, waited time.Duration) {
	defer c.cancel()
	began := time.Now()
	ticker := time.NewTicker(p.every)
	defer ticker.Stop()
	for told := (&step{program: p, name: c.step.name}); ; {
		select {
		case <-c.ended:
			_, _ = p.out.Write(c.printed.Bytes())
			return c.o, time.Since(began)
		case <-ticker.C:
			told.say("the others have ended; it goes on")
		}
	}
}
