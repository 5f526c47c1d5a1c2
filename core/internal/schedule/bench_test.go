package schedule

import (
	"fmt"
	"testing"
	"time"
)

// One instant, and then from fire to fire, as a job does.
func BenchmarkNext(b *testing.B) {
	start := time.Date(2026, 3, 7, 0, 0, 0, 0, time.UTC)
	for _, expr := range []string{
		"0/5 * * * * ?", "0 0/5 9-17 ? * MON-FRI", "0 0 12 * * ?", "59 59 23 31 12 ?", "0 0 3 LW * ?", "0 0 3 ? * 6#3", "0 0 0 29 2 ?",
		"0 0 0 ? 2 5#5", "0 0 0 30 2 ?", "0 30 2 ? 3 1#2", "@every 90s",
	} {
		for _, zone := range []string{"UTC", "America/New_York"} {
			b.Run(fmt.Sprintf("%s %s", expr, zone), func(b *testing.B) {
				s := parse(b, Config{Expr: expr, Zone: zone, Gap: SkipGap})
				b.ReportAllocs()
				at := start
				for b.Loop() {
					next, ok := s.Next(at)
					if at = next; !ok {
						at = start
					}
				}
			})
		}
	}
}

func BenchmarkParse(b *testing.B) {
	for _, expr := range []string{"0/5 * * * * ?", "0 0 12 ? * 6#3 2026-2029", "0 0 0 30 2 ?"} {
		b.Run(expr, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				parse(b, Config{Expr: expr, Zone: "Asia/Shanghai"})
			}
		})
	}
}
