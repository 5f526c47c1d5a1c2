package tracing_test

import (
	"context"
	"log/slog"
	"os"
	"time"

	"github.com/elasticron/elasticron/core/event"
	"github.com/elasticron/elasticron/tracing"
)

// What a run leaves in a log.
func ExampleSlog() {
	short := func(_ []string, a slog.Attr) slog.Attr {
		switch a.Key {
		case slog.TimeKey, "id", "host", "task":
			return slog.Attr{}
		}
		return a
	}
	trace := tracing.New(tracing.Slog(slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: short}))), tracing.Config{})
	begun := time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)
	run := event.Run{Job: "hello", Instance: "10.0.0.5@-@web-k2mzq7xwpa", Item: 2, Due: begun, Source: "schedule", Began: begun}
	trace.Listen(event.ItemCalled{Run: run}) // a scheduler does this: core.WithListener(trace.Listen)
	run.Ended = begun.Add(time.Second)
	trace.Listen(event.ItemReturned{Run: run})
	_ = trace.Close(context.Background())
	// Output:
	// level=INFO msg="execution begun" job=hello item=2 ip=10.0.0.5 source=NORMAL_TRIGGER
	// level=INFO msg="execution ended" job=hello item=2 ip=10.0.0.5 source=NORMAL_TRIGGER success=true took=1s
}
