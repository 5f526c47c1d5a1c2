package layout

import (
	"fmt"
	"io"
	"log/slog"
	"math"
	"time"

	"github.com/elasticron/elasticron/internal/field"
)

// A Config is the configuration of a job as it is written in the registry. The
// fields are ElasticJob's, under its names; numbers are of 32 bits.
//
// A reader takes the zero value when the key is absent, -1 for MaxTimeDiffSeconds; the
// defaults of a new job are for the caller to set.
type Config struct {
	// Cron is in Quartz's dialect; empty for a job that runs on request.
	Cron        string
	Description string
	// Disabled: the instances register their servers as disabled.
	Disabled bool
	Failover bool
	// JobErrorHandlerType is empty for the default, as all types are.
	JobErrorHandlerType string
	// JobExecutorThreadPoolSizeProviderType is written under its old key,
	// jobExecutorServiceHandlerType, when OldThreadPoolKey is set.
	JobExecutorThreadPoolSizeProviderType string
	// OldThreadPoolKey: the thread pool's type was read, and is written, under
	// the key of ElasticJob 3.0.0 to 3.0.4, which refuses the new one as 3.0.5
	// refuses the old. It means nothing while the type is empty.
	OldThreadPoolKey bool
	// JobExtraConfigurations is what another program keeps here. It may hold
	// passwords. It is written back as it was read.
	JobExtraConfigurations  Opaque
	JobListenerTypes        []string
	JobName                 string
	JobParameter            string
	JobShardingStrategyType string
	Label                   string
	// MaxTimeDiffSeconds is -1 for no check.
	MaxTimeDiffSeconds int
	Misfire            bool
	MonitorExecution   bool
	Overwrite          bool
	Props              Props
	// ReconcileIntervalMinutes is 0 or less for never.
	ReconcileIntervalMinutes int
	// ShardingItemParameters: ParseItemParams, FormatItemParams.
	ShardingItemParameters string
	ShardingTotalCount     int
	StaticSharding         bool
	// TimeZone is empty for the local one.
	TimeZone string
}

// mostReconcile is more than anybody waits; three times as long still is a time.Duration.
const mostReconcile = 50 * 365 * 24 * time.Hour

// ReconcileInterval is ReconcileIntervalMinutes; 0 is never.
func (c *Config) ReconcileInterval() time.Duration {
	return time.Duration(min(max(c.ReconcileIntervalMinutes, 0), int(mostReconcile/time.Minute))) * time.Minute
}

// Props are the settings of a kind of job and of its handlers. They may hold
// passwords: fmt and slog show only how many there are.
type Props map[string]string

// String hides the content.
func (p Props) String() string { return fmt.Sprintf("[%d hidden]", len(p)) }

// Format hides the content from every verb of fmt.
func (p Props) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, p.String()) }

// LogValue hides the content.
func (p Props) LogValue() slog.Value { return slog.StringValue(p.String()) }

// validate reports what neither Java nor a reader of ours would accept.
func (c *Config) validate() error {
	if err := validateJobName(c.JobName); err != nil {
		return err
	}
	if c.ShardingTotalCount <= 0 {
		return field.Errorf("shardingTotalCount", "is %d, want 1 or more", c.ShardingTotalCount)
	}
	for _, n := range []struct {
		key   string
		value int
	}{
		{"shardingTotalCount", c.ShardingTotalCount},
		{"maxTimeDiffSeconds", c.MaxTimeDiffSeconds},
		{"reconcileIntervalMinutes", c.ReconcileIntervalMinutes},
	} {
		if n.value > math.MaxInt32 || n.value < math.MinInt32 {
			return field.Errorf(n.key, "is %d, which does not fit 32 bits; use a smaller one", n.value)
		}
	}
	return nil
}
