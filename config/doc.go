// Package config reads what a program is configured with from one YAML file: the
// registry, and the jobs. The same file works with every registry whose adapter
// the program imports.
//
//	registry:
//	  url: ${REGISTRY:-etcd://127.0.0.1:2379/shop}
//	jobs:
//	  hello:
//	    cron: 0/5 * * * * ?
//	    shardingTotalCount: 3
//	    shardingItemParameters: 0=Beijing,1=Shanghai,2=Shenzhen
//
// The smallest program names a function for each job of the file:
//
//	cfg, err := config.Load("jobs.yaml")
//	...
//	reg, err := cfg.Open(ctx)
//	...
//	defer reg.Close()
//	sched := core.New(reg)
//	err = cfg.Bind(sched, map[string]core.Job{"hello": core.JobFunc(hello)})
//	...
//	err = sched.Start(ctx)
//
// Bind refuses a job without a function and a function without a job, and names
// them. A program that runs only some of the jobs of a file asks for each with
// Config.Job and adds it itself. What core.New is told of sharding strategies
// (core.WithStrategy) is told to Load too, so that it knows their names.
//
// # Variables
//
// In every value of the file ${NAME} is replaced by an environment variable, ${NAME:-default}
// by the default when the variable is unset or empty, and $$ is a dollar; a lone $ is
// refused. Quotes make no difference. What stands among the settings of a job is
// written to the registry: put no secret there. A prop that holds one, by its name
// (db.password) or by a password in a URL, is refused: name the file or the variable that
// holds it (db.passwordFile, db.passwordEnv).
//
// # The registry
//
//	registry:
//	  url: zookeeper://10.0.0.1:2181,10.0.0.2:2181/shop?session-timeout=6s
//	  username: elasticron
//	  passwordFile: secrets/registry   # or passwordEnv: REGISTRY_PASSWORD
//	  tls:
//	    enabled: true                  # the default when a file is given
//	    ca: ca.pem
//	    cert: client.pem
//	    key: client.key
//
//	  retry: {base: 1s, max: 3s, retries: 3}   # package registry/retry; without it, none
//
// Whatever the adapter of the scheme understands stands in the url; the other keys
// become the settings username, password-file, password-env, ca, cert, key and tls
// of it. File names are relative to the folder of the YAML file, and so are those that
// settings of types and error handlers name, as http.uriFile does.
//
// A value that is empty counts as not given in this block. The exception to variables is
// passwordEnv, which is itself the name of one.
//
// A password stands neither in the file nor in the url: both are refused.
//
// # The jobs
//
// jobs is a mapping from the name of a job to its settings. They have ElasticJob's
// names, and the names of core.JobConfig where ElasticJob has none:
//
//	key                      JobConfig          value
//	(the name of the block)  Name
//	elasticJobClass          Class              text
//	cron                     Cron               text
//	timeZone                 TimeZone           text
//	gap                      Gap                run-after or skip
//	overlap                  Overlap            first or both
//	shardingTotalCount       Shards             whole number
//	shardingItemParameters   ItemParams          0=a,1=b or a mapping {0: a, 1: b}
//	jobParameter             JobParam           text
//	monitorExecution         Monitor            true (default) or false
//	showRunningAfter         ShowRunningAfter   duration, or never
//	beginAhead               BeginAhead         duration, or never
//	misfire                  Misfire            true (default), false or all
//	misfireCap               MisfireCap         whole number
//	misfireWindow            MisfireWindow      duration, such as 1h; 0s: no bound, but nothing from a time in which nobody was up
//	failover                 Failover           true or false
//	maxTimeDiff              MaxTimeDiff        duration in whole seconds, such as 90s
//	reconcileInterval        ReconcileInterval  duration in whole minutes, or never
//	jobShardingStrategyType  Strategy           text
//	description              Description        text
//	label                    Label              text
//	props                    Props              mapping of texts
//	disabled                 Disabled           true or false
//	overwrite                Overwrite          true or false
//	staticSharding           StaticSharding     true or false
//	concurrency              Concurrency        whole number
//
// Besides, a job may say what it does, for which this process alone counts:
//
//	type                  SCRIPT or HTTP, with settings among props (package job); DATAFLOW is a
//	                      job.Dataflow of the program, with settings among props too; SIMPLE or
//	                      nothing is a function of the program
//	jobErrorHandlerType   what becomes of a failed run (package errorhandler): LOG, THROW,
//	                      IGNORE, STOP, WEBHOOK, and those whose packages are imported
//	attempts              how often a run is tried in all, with pauses of 1s, 2s, 4s and so on, 1m at
//	                      most (package job/link)
//	timeout               duration that bounds each attempt
//
// So a file alone runs commands and requests, with cfg.Bind(sched, nil):
//
//	jobs:
//	  reindex:
//	    cron: 0 0 2 * * ?
//	    shardingTotalCount: 3
//	    type: SCRIPT
//	    jobErrorHandlerType: STOP
//	    timeout: 10m
//	    props: {script.command.line: scripts/reindex.sh --full}
//
// A prop below script., http. and so on that the job's type or error handler does not read is
// refused when the job is made. A request has headers too, http.header.NAME, and
// http.headerFile.NAME or http.headerEnv.NAME for one that is a secret.
//
// What many jobs have in common stands in a block of its own, and counts for every job that
// does not say otherwise. Of props each counts by itself:
//
//	defaults:
//	  timeZone: Europe/Berlin
//	  jobErrorHandlerType: WEBHOOK
//	  props: {webhook.urlEnv: ALERTS_URL}
//
// A key that is left out has the default of core.JobConfig, which is that of
// ElasticJob's Java API: monitorExecution and misfire are true (in ElasticJob's
// Spring Boot starter they are false). ElasticJob's maxTimeDiffSeconds and
// reconcileIntervalMinutes are durations here; the error tells the line to write.
//
// # ElasticJob's file
//
// Load and Parse read ElasticJob's own YAML too, the block elasticjob of a Spring Boot
// application.yml; Config.Notes says what is different. Convert makes a file of ours of it,
// and takes passwords out; ConvertRegistry does so for jobs that ElasticJob has written to a
// registry. The command is `elasticron convert`, the page docs/migration.md.
//
// # Schema and reference
//
// Schema is the JSON Schema of the file, Reference the page docs/configuration.md. Both are
// made of the tables by which the file is read, whose keys a test holds to the fields of
// core.JobConfig.
//
// # Errors
//
// The error of Load and Parse is an *Error that holds every *FieldError found, sorted by
// line: each is one line with file, line, column, field, what is wrong and the fix.
// Unknown and repeated keys, wrong types, and all that core.JobConfig.Validate finds are
// problems; what is wrong with the block defaults is told once. Check finds also what Bind
// would refuse, as far as that is known without the program; the command is `elasticron check`. Anchors, aliases, merge keys and tags are not read. No such error repeats
// a value of the registry block, nor one of props. Open and Bind name the place in the
// file too.
//
// # Concurrency
//
// Everything is a value: safe for concurrent reading.
package config
