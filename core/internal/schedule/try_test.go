package schedule

import (
	"fmt"
	"testing"
	"time"
	_ "time/tzdata"
)

func TestTry(t *testing.T) {
	for _, c := range [][2]string{{"0/5 * * * * ?", ""}, {"* * * * *", ""}, {"0 9 * * 1-5", ""}, {"60 * * * * ?", ""}, {"0 0 12 1 * MON", ""}, {"0 0 12 * * *", ""}, {"@every x", ""}, {"@every 90s", ""}, {"@delay 90s", "GMT+8"}, {"0 0 0 ? * 6#3", "Mars/X"}, {"0 0 0 ? * 6#3", "GMT+25"}, {"0 30 2 * * ?", "America/New_York"}, {"0 0 0 30 2 ?", ""}, {"0 0 0 31W * ?", ""}, {"0 0 0 ? * L", ""}, {"0 0 22-2/2 * * ?", ""}, {"0,x 0 0 * * ?", ""}, {"TZ=UTC", ""}, {"@dayly", ""}, {"0 0 0 ? 2 5#5", ""}} {
		s, err := Parse(Config{Expr: c[0], Zone: c[1]})
		if err != nil {
			fmt.Println(c, "ERR", err)
			continue
		}
		x := time.Date(2026, 3, 7, 22, 0, 0, 0, time.UTC)
		for i := 0; i < 4; i++ {
			n, ok := s.Next(x)
			fmt.Println(c, n, ok)
			if !ok {
				break
			}
			x = n
		}
	}
}
func BenchmarkNext(b *testing.B) {
	for _, e := range []string{"0/5 * * * * ?", "0 0 12 * * ?", "59 59 23 31 12 ?", "0 0 3 ? * 6L", "0 0 0 29 2 ?", "0 0 0 ? 2 5#5", "0 0 0 30 2 ?"} {
		for _, z := range []string{"UTC", "America/New_York"} {
			b.Run(e+z, func(b *testing.B) {
				b.ReportAllocs()
				s, _ := Parse(Config{Expr: e, Zone: z})
				x := time.Date(2026, 3, 7, 0, 0, 0, 0, time.UTC)
				for b.Loop() {
					s.Next(x)
				}
			})
		}
	}
}
