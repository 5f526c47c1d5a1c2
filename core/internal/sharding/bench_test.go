package sharding

import (
	"fmt"
	"testing"

	"github.com/elasticron/elasticron/core/internal/ledger"
	"github.com/elasticron/elasticron/strategy"
)

// crowd are members that own total items evenly.
func crowd(members, total int) View {
	v := View{Total: total, Up: start, Assign: by(strategy.Sticky{})}
	for k := range members {
		l := ledger.New(total)
		for n := k; n < total; n += members {
			l.Items[n] = ledger.Item{Through: start}
		}
		v.Members = append(v.Members, Member{ID: fmt.Sprintf("10.0.0.%d@-@web-%d", k, k), Live: true, Eligible: true, Ledger: l})
	}
	return v
}

// 10,000 items on 100 members.
func BenchmarkPlan(b *testing.B) {
	leaves := crowd(100, 10_000)
	leaves.Members[50].Live, leaves.Members[50].Eligible = false, false
	first := crowd(100, 10_000)
	for i := range first.Members {
		first.Members[i].Ledger = ledger.New(0)
	}
	total := crowd(100, 10_000)
	total.Total = 9_999
	for name, v := range map[string]View{"settled": crowd(100, 10_000), "leaves": leaves, "first": first, "total": total} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			steps := 0
			for b.Loop() {
				steps = len(Derive(v).Steps(36, 1, func(int) int { return 1 }))
			}
			b.ReportMetric(float64(steps), "steps")
		})
		b.Run(name+"/assign", func(b *testing.B) {
			var ids []string
			previous := map[string][]int{}
			for _, m := range v.Members {
				if m.Live {
					ids = append(ids, m.ID)
					previous[m.ID] = m.Ledger.Numbers()
				}
			}
			for b.Loop() {
				v.Assign(ids, v.Total, previous)
			}
		})
	}
}
