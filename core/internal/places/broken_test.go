package places

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// rude panics with itself when it is printed.
type rude struct{}

func (rude) Error() string { panic(rude{}) }

// What a function panics with may panic itself, and a nil pointer to a PanicError is an error like any other.
func TestAPanicErrorCanAlwaysBeRead(t *testing.T) {
	require.Equal(t, "panic: oh", (&PanicError{Value: "oh"}).Error())
	require.Equal(t, "panic: panic", (&PanicError{Value: (*PanicError)(nil)}).Error())
	require.Equal(t, "panic: places.rude", (&PanicError{Value: rude{}}).Error())
	require.Equal(t, "panic", (*PanicError)(nil).Error())
	inBubble(t, func(t *testing.T) {
		p := New(1, nil)
		r := &run{log: &log{}, call: func() error { panic(rude{}) }}
		p.Submit(r)
		p.Wait()
		require.EqualError(t, r.err, "panic: places.rude")
	})
}

// An entering run does something when it is asked.
type entering struct {
	*run
	enter func() bool
}

func (r *entering) Enter() bool { return r.enter() }

// Between the answer of Enter and the call of the function nobody may take the item for one whose function does not
// run: its session was ended then, and the item begun again elsewhere, before the function was called.
func TestWhatIsAskedToEnterCountsAsRunning(t *testing.T) {
	for _, enters := range []bool{true, false} {
		inBubble(t, func(t *testing.T) {
			l := &log{}
			var p *Places
			var idle, dropped []bool
			p = New(1, func(n int) { idle = append(idle, p.Idle()); l.note("returned", n) })
			p.Submit(&entering{&run{log: l, item: 3, call: sleep(time.Second)}, func() bool {
				idle, dropped = append(idle, p.Idle()), append(dropped, len(p.Running()) == 0)
				time.Sleep(time.Second)
				return enters
			}})
			p.Wait()
			require.Equal(t, []bool{false, true}, idle, "whoever waits for that is told")
			require.Equal(t, []bool{false}, dropped)
			require.True(t, p.Idle())
			want := []string{"call 3", "left 3", "returned 3"}
			if !enters {
				want = []string{"dropped 3", "returned 3"}
			}
			require.Equal(t, want, l.take())
		})
	}
}

// A lasting run keeps its place until it is let go.
func lasting(l *log) (r *run, let func()) {
	until := make(chan struct{})
	return &run{log: l, item: -1, call: func() error { <-until; return nil }}, func() { close(until) }
}

// What goes first is found a place in the queue without looking at those that wait already.
func BenchmarkSubmit(b *testing.B) {
	for name, first := range map[string]func(n int) bool{
		"first": func(int) bool { return true }, "last": func(int) bool { return false }, "mixed": func(n int) bool { return n%2 == 0 },
	} {
		for _, items := range []int{1_000, 10_000, 100_000} {
			b.Run(fmt.Sprintf("%s/items=%d", name, items), func(b *testing.B) {
				for b.Loop() {
					l := &log{}
					p := New(1, nil)
					busy, let := lasting(l)
					p.Submit(busy)
					for n := range items {
						p.Submit(&run{log: l, item: n, first: first(n), refuse: true})
					}
					let()
					p.Wait()
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*items), "ns/item")
			})
		}
	}
}

// The order of those that go first, of the others, and of what is dropped of both.
func TestWhatGoesFirstKeepsItsOrder(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		l := &log{}
		p := New(1, nil)
		busy, let := lasting(l)
		p.Submit(busy)
		for n := range 10 {
			p.Submit(&run{log: l, item: n, first: n%3 == 0, refuse: true})
		}
		require.True(t, p.Drop(3))
		require.True(t, p.Drop(4))
		require.Equal(t, []int{0, 1, 2, 5, 6, 7, 8, 9}, p.Queued())
		p.Submit(&run{log: l, item: 3, refuse: true}) // again, and it does not go first any more
		let()
		p.Wait()
		var entered []string
		for _, line := range l.take() {
			if line[0] == 'e' {
				entered = append(entered, line)
			}
		}
		require.Equal(t, []string{"enter -1", "enter 0", "enter 6", "enter 9", "enter 1", "enter 2", "enter 5", "enter 7", "enter 8", "enter 3"}, entered)
	})
}
