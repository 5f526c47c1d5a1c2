// Package job has kinds of job that are more than a Go function: Script runs a command for each
// item, HTTP makes a request, Dataflow fetches data and processes them. Each is a core.Job:
//
//	err := sched.Add(&job.Script{Command: "scripts/reindex.sh --full"}, cfg)
//	err = sched.Add(&job.HTTP{Method: "POST", URL: "http://127.0.0.1:8080/reindex"}, cfg)
//	err = sched.Add(&job.Dataflow[Order]{Fetch: after, Process: bill, Streaming: true}, cfg)
//
// A Kind makes jobs of a configuration's props, and Kinds knows kinds by name, so that a file
// alone says what a job does (package config).
//
// # The sharding context
//
// What a command or a server is told of its item is ElasticJob's, in JSON:
//
//	{"jobName":"hello","taskId":"hello@-@2@-@READY@-@10.0.0.1@-@web-1-…","shardingTotalCount":3,
//	 "jobParameter":"","shardingItem":2,"shardingParameter":"Shenzhen"}
//
// shardingParameter is left out where the item has none. It is byte for byte what ElasticJob's
// Gson makes of the same values: in texts < > & = and ' are \u003c and so on, beside what JSON has to
// escape, and what is not ASCII stands as it is. A script gets it as its last argument, and in its
// environment:
//
//	ELASTICRON_SHARDING_CONTEXT   the same JSON
//	ELASTICRON_JOB, ELASTICRON_ITEM, ELASTICRON_TOTAL, ELASTICRON_PARAM, ELASTICRON_JOB_PARAM,
//	ELASTICRON_TASK_ID, ELASTICRON_DUE (RFC 3339), ELASTICRON_ATTEMPT, ELASTICRON_SOURCE,
//	ELASTICRON_FENCE              the fields of core.Shard
//
// A request has it in the header shardingContext, where what is not ASCII is escaped too.
//
// # Differences from ElasticJob
//
// A command line without quotes, tabs, line ends and backslashes is run alike. Otherwise ElasticJob's
// commons-exec, once it has split the line, does more with it than Script:
//
//   - An argument with a space in it gets quotes around it, which the command then sees: with
//     sh -c 'echo a' the shell looks for a command named "echo a". Here it is echo with an argument.
//   - Quotes and spaces at the ends of an argument go, also those that stood within other quotes:
//     '"a"' is a, here "a" with its quotes. What has both kinds inside is an error.
//   - The name of the command has slashes for its backslashes.
//   - Tabs and line ends outside of quotes are parts of a word, here they end it.
//
// A request's status of 400 or more is an error here, and only logged there. Its timeouts bound it as
// a whole (HTTP.ReadTimeout), there each read by itself.
//
// # When a run is cut off
//
// A script whose context ends gets SIGTERM, with all its process group, and after its Grace
// SIGKILL. A request is broken off; whether the server goes on is its matter. When this process
// is killed itself, a script goes on by itself while another instance may run the item again:
// what it writes to should refuse smaller values of ELASTICRON_FENCE.
//
// A Dataflow passes a batch only when it is processed and the item is still its own (package
// core/offset). What was processed after that is processed again by whoever runs the item next.
//
// Process groups are tested on Linux. The package is compiled for macOS, which shares the code,
// and for Windows, where taskkill ends a tree of processes; it was not run on either.
//
// # Concurrency
//
// A job runs many items at once, and so are the functions of a Dataflow called. Its fields must not
// change once it was added.
package job
