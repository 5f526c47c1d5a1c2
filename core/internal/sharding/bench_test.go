package sharding

import (
	"fmt"
	"testing"

	"github.com/elasticron/elasticron/internal/layout"
	"github.com/elasticron/elasticron/internal/layout/ledger"
	"github.com/elasticron/elasticron/strategy"
)

// evenView are members that own total items evenly.
func evenView(members, total int) View {
	v := View{
		Base: &layout.Base{Epoch: 1, To: total, Through: start, Assigned: true}, Total: total, Monitor: true,
		Now: at(10), Up: start, Assign: by(strategy.Sticky{}),
	}
	for k := range members {
		l := ledger.New(1, total)
		for n := k; n < total; n += members {
			l.Set(n, ledger.Item{Through: start})
		}
		v.Members = append(v.Members, on(fmt.Sprintf("10.0.%d.%d@-@web-%d", k/256, k%256, k), l))
	}
	return v
}

// One of 100 members dies: only the items that move are written, in chunks.
func TestOnlyWhatMovesIsWritten(t *testing.T) {
	v := evenView(100, 10_000)
	v.Members[50].State, v.Members[50].Eligible = Dead, false
	p := Derive(v)
	steps, ledgers := 0, 0
	written := map[string]bool{}
	for s := range p.Steps(wide()) {
		steps++
		ledgers += len(s.Ledgers)
		for _, x := range s.Ledgers {
			written[x.ID] = true
		}
	}
	if len(p.Moves) != 100 || steps > 10 || ledgers > 99+2*steps || len(written) > 100 {
		t.Fatalf("%d moves, %d steps, %d ledgers of %d", len(p.Moves), steps, ledgers, len(written))
	}
}

func BenchmarkPlan(b *testing.B) {
	for _, size := range []struct{ members, total int }{{100, 10_000}, {1_000, 100_000}} {
		leaves := evenView(size.members, size.total)
		leaves.Members[50].State, leaves.Members[50].Eligible = Dead, false
		first := evenView(size.members, size.total)
		first.Base = &layout.Base{Epoch: 1, To: size.total, Through: start}
		for i := range first.Members {
			first.Members[i].Ledger = ledger.New(0, 0)
		}
		hold := evenView(size.members, size.total)
		hold.Total--
		for _, c := range []struct {
			name string
			view View
		}{{"balanced", evenView(size.members, size.total)}, {"leaves", leaves}, {"first", first}, {"hold", hold}} {
			b.Run(fmt.Sprintf("%s/%d", c.name, size.total), func(b *testing.B) {
				b.ReportAllocs()
				steps := 0
				for b.Loop() {
					steps = 0
					for range Derive(c.view).Steps(wide()) {
						steps++
					}
				}
				b.ReportMetric(float64(steps), "steps")
			})
		}
	}
}
