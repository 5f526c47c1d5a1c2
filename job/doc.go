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
// shardingParameter is left out where the item has none. A script gets it as its last argument,
// and in its environment:
//
//	ELASTICRON_SHARDING_CONTEXT   the same JSON
//	ELASTICRON_JOB, ELASTICRON_ITEM, ELASTICRON_TOTAL, ELASTICRON_PARAM, ELASTICRON_JOB_PARAM,
//	ELASTICRON_TASK_ID, ELASTICRON_DUE (RFC 3339), ELASTICRON_ATTEMPT, ELASTICRON_SOURCE,
//	ELASTICRON_FENCE              the fields of core.Shard
//
// A request has it in the header shardingContext, where what is not ASCII is escaped.
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
