package core

import "time"

// JobConfig is what a job is. The zero value of a field means its default. The
// first instance writes it to the registry; later ones adopt what stands there,
// unless Overwrite is set. Concurrency and Class are of this process alone.
type JobConfig struct {
	// Name identifies the job in its namespace: 1 to 255 bytes without "/".
	Name string
	// Class is the Java class or type of the job when Java members share it. ""
	// joins only jobs that have none.
	Class string
	// Cron says when the job fires: Quartz's six or seven fields ("0/5 * * * * ?"),
	// "@every 90s" (fixed rate, at multiples since the Unix epoch), "@delay 90s"
	// (fixed delay after the end of an item's run) or @hourly, @daily and so on.
	Cron string
	// TimeZone is an IANA name, "UTC" or "GMT+8". "" is the zone of the process.
	TimeZone string
	// Gap says what becomes of a fire that a change to summer time leaves out:
	// "run-after" (default) or "skip".
	Gap string
	// Overlap says what becomes of a fire that occurs twice when summer time
	// ends: "first" (default) or "both".
	Overlap string
	// Shards is the sharding total count, 1 to 100,000, with a fixed delay to 4,000.
	Shards int
	// Params are the items' parameters. A value holds neither "," nor "=".
	Params map[int]string
	// Param is given to every item.
	Param string
	// MonitorOff leaves out the record of running items: a fire costs no request,
	// and nothing prevents overlap across instances or carries fires along.
	MonitorOff bool
	// MisfireOff: reserved for the misfire policies; stored, not yet active.
	MisfireOff bool
	// Failover is stored and accepted with a warning: not yet active.
	Failover bool
	// MaxTimeDiff is the allowed difference of clocks, in whole seconds; 0 is any. Stored, not yet active.
	MaxTimeDiff time.Duration
	// ReconcileInterval is how often the leader compares the whole state with
	// what it should be, in whole minutes. 0 is 10 minutes, negative is never.
	ReconcileInterval time.Duration
	// Strategy names the sharding strategy; "" is AVG_ALLOCATION.
	Strategy string
	// Description and Label are for people.
	Description, Label string
	// Props are free settings, visible to all who can read the registry.
	Props map[string]string
	// Disabled starts this server's part of the job disabled.
	Disabled bool
	// Overwrite replaces the configuration in the registry at start.
	Overwrite bool
	// StaticSharding assigns items once and moves them only when Shards changes. Stored, not yet active.
	StaticSharding bool
	// Concurrency bounds the items that run at once in this process. 0 is
	// 2×GOMAXPROCS.
	Concurrency int
}
