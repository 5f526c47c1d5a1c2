package strategy

import (
	"fmt"
	"testing"
)

// 10,000 items over 100 instances. For STICKY ten of them have just been replaced
// and ten are new.
func BenchmarkAssign(b *testing.B) {
	before := Input{Job: "orders", Total: 10_000}
	for k := range 90 {
		before.Instances = append(before.Instances, benchID(k, "a"))
	}
	in := Input{Job: before.Job, Total: before.Total, Previous: Sticky{}.Assign(before)}
	for k := range 100 {
		life := "a"
		if k < 10 {
			life = "b"
		}
		in.Instances = append(in.Instances, benchID(k, life))
	}
	for _, s := range builtin {
		b.Run(s.Name(), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				s.Assign(in)
			}
		})
	}
}

func benchID(k int, life string) string {
	return fmt.Sprintf("10.0.%d.%d@-@web-%d-%s", k/10, k%10, k, life)
}
