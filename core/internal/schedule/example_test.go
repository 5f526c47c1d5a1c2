package schedule_test

import (
	"fmt"
	"time"

	"github.com/elasticron/elasticron/core/internal/schedule"
)

func Example() {
	s, err := schedule.Parse(schedule.Config{Expr: "0 30 2 ? * MON-FRI", Zone: "Europe/Berlin"})
	if err != nil {
		fmt.Println(err)
		return
	}
	next, ok := s.Next(time.Date(2026, 3, 27, 12, 0, 0, 0, time.UTC))
	fmt.Println(next, ok)
	// Output: 2026-03-30 02:30:00 +0200 CEST true
}

func ExampleParse_error() {
	_, err := schedule.Parse(schedule.Config{Expr: "0 9 * * 1-5"})
	fmt.Println(err)
	// Output: cron: has 5 fields, Quartz has 6, seconds first, or 7 with the year; write 0 0 9 ? * MON-FRI
}
