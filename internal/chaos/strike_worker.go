package main

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/elasticron/elasticron/internal/failpoint"
)

// What worker and driver say to each other about failpoints.
const (
	wordStrike = "strike" // driver: stop at the point of this number
	wordStruck = "struck" // worker: a goroutine stands there
	wordGoOn   = "on"     // driver: let it go on, and do not stop again
)

// standstill bounds how long a goroutine stands at a failpoint.
const standstill = 10 * time.Second

// A trap holds the first goroutine that comes to a failpoint until the driver has struck.
type trap struct {
	mu    sync.Mutex
	point failpoint.Point // "" while it is not set
	goOn  chan struct{}
}

// set makes the next goroutine stop at the point of a number; 0 is none, 1 the first.
func (t *trap) set(number int) {
	if number < 1 || number > len(failpoint.Points) {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.point, t.goOn = failpoint.Points[number-1], make(chan struct{})
}

// hit is called at every failpoint.
func (t *trap) hit(at failpoint.Point) {
	t.mu.Lock()
	if t.point == "" || at != t.point {
		t.mu.Unlock()
		return
	}
	t.point = ""
	goOn := t.goOn
	t.mu.Unlock()
	fmt.Println(wordStruck)
	timer := time.NewTimer(standstill)
	defer timer.Stop()
	select {
	case <-goOn:
	case <-timer.C:
	}
}

// release lets who stands there go on.
func (t *trap) release() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.point = ""
	if t.goOn != nil {
		close(t.goOn)
		t.goOn = nil
	}
}

// numberOf is what a point is called between processes.
func numberOf(p failpoint.Point) int { return slices.Index(failpoint.Points, p) + 1 }
