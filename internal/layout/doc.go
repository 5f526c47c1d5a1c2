// Package layout is the key layout of a job: the only place that knows the paths
// of its nodes and how the values at them are written. The layout is that of
// ElasticJob 3, so that Java members and consoles understand it; Elasticron's own
// state stands beside it, under /elasticron.
//
//	j, err := layout.New("shop", "hello")
//	...
//	j.Running(3) // /shop/hello/sharding/3/running
//	cfg, err := j.UnmarshalConfig(node.Value)
//	...
//	text, err := layout.MarshalConfig(cfg)
//
// # Guarantees
//
// Paths from a valid Job with valid parts (an id from InstanceID.String, an item
// from 0) pass registry.ValidatePath. What MarshalConfig writes is read the same by
// ElasticJob's SnakeYAML, by Go's YAML library and by UnmarshalConfig, which
// also reads what every 3.0 wrote, and refuses what ElasticJob 2 did.
// Readers accept any bytes without panic.
//
// # Errors
//
// Every error is, or wraps, a *field.Error: one line that names the field and the
// fix. It never repeats a value of props or of jobExtraConfigurations.
//
// # Concurrency
//
// Everything is a value or a pure function: safe for concurrent use.
package layout
