// Package field has the one error that says which field of a configuration is wrong,
// wherever it stands: in a program's core.JobConfig, a file, or a node of the registry.
//
//	var wrong *core.ConfigError // the same type, where users see it
//	if errors.As(err, &wrong) {
//		fmt.Println(wrong.Field, wrong.Problem)
//	}
//
// Who finds a problem names the field as it knows it; who knows more, such as the name
// of the job or the line of the file, adds it with [Adapt]. So a problem is worded once,
// and told in the words of the one who reads it.
//
// # Concurrency
//
// An *Error is a plain value, which nobody changes once it is returned. Everything is
// safe for concurrent use.
//
// # Errors
//
// Every *Error is [ErrWrong].
package field
