package tracing

import (
	"context"
	"log/slog"
)

// Slog is a sink that writes to a logger: what begins and succeeds at the level Info, what fails,
// was skipped or lost at Warn. It is an example of a sink too.
func Slog(l *slog.Logger) Sink { return slogSink{l} }

type slogSink struct{ log *slog.Logger }

// Execution implements Sink.
func (s slogSink) Execution(ctx context.Context, e Execution) error {
	attrs := []slog.Attr{
		slog.String("id", e.ID), slog.String("job", e.Job), slog.Int("item", e.Item), slog.String("task", e.TaskID),
		slog.String("host", e.HostName), slog.String("ip", e.IP), slog.String("source", e.Source),
	}
	level, text := slog.LevelInfo, "execution begun"
	if !e.Ended.IsZero() {
		text = "execution ended"
		attrs = append(attrs, slog.Bool("success", e.Success), slog.Duration("took", e.Ended.Sub(e.Began)))
	}
	if e.FailureCause != "" {
		level = slog.LevelWarn
		attrs = append(attrs, slog.String("cause", e.FailureCause))
	}
	s.log.LogAttrs(ctx, level, text, attrs...)
	return nil
}

// Status implements Sink.
func (s slogSink) Status(ctx context.Context, x Status) error {
	level := slog.LevelInfo
	if x.State == TaskError || x.State == TaskDropped || x.State == TaskLost {
		level = slog.LevelWarn
	}
	attrs := []slog.Attr{slog.String("job", x.Job), slog.Any("items", x.Items), slog.String("state", string(x.State)), slog.String("task", x.TaskID)}
	if x.Message != "" {
		attrs = append(attrs, slog.String("message", x.Message))
	}
	s.log.LogAttrs(ctx, level, "status", attrs...)
	return nil
}
