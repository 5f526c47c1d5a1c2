// Package settings says what a job's configuration in the registry means: whether it is
// right, what follows from it, and how two of them differ.
//
//	s, err := settings.Parse("hello", stored, nil)
//	...
//	next, ok := s.Schedule.Next(time.Now())
//	for _, change := range settings.Differences(before, stored) {
//		...
//	}
//
// Fields have their names in core.JobConfig, which are those of the one who reads the
// error or the event. Settings of ours that ElasticJob does not know travel as props
// named elasticron.*, the only place in the configuration where its readers accept what
// they do not know.
//
// # Concurrency
//
// Everything is a value or a pure function, but for the local zone, which is looked up
// once. Safe for concurrent use.
//
// # Errors
//
// Every error is one *field.Error, or several joined: all that is wrong is told at once.
// No error and no difference shows a value of props.
package settings
