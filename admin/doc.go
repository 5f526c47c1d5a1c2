// Package admin lets operators look at jobs and steer them: jobs, servers, instances and
// items with their state and why, the switches that keep them from running, changes of a
// configuration, the removal of a job, and the search for what is left behind. It needs
// no scheduler and no life of its own: it works beside jobs that others run, Java members
// among them.
//
//	store, err := reg.OpenStore(ctx)
//	...
//	defer store.Close(ctx)
//	a, err := admin.New(store, reg.Namespace())
//	...
//	err = a.Pause(ctx, "hello", "worker-3")
//	items, err := a.Items(ctx, "hello")
//	for _, it := range items {
//		fmt.Println(it.Number, it.State, it.Why)
//	}
//
// Each call of ElasticJob's lifecycle API has its function:
//
//	getJobConfiguration, updateJobConfiguration      Config, SetConfig
//	removeJobConfiguration                           RemoveJob
//	disable, enable, shutdown, remove (job?, ip?)    Disable, Enable, Shutdown, RemoveServers
//	dump                                             Dump; ServeDumps answers ElasticJob's own
//	trigger (job)                                    Trigger
//	disable, enable (job, item)                      DisableItem, EnableItem
//	getJobsTotalCount                                Names
//	getAllJobsBriefInfo, getJobBriefInfo             Jobs, Job
//	getJobsBriefInfo (ip)                            JobsOn
//	getServersTotalCount, getAllServersBriefInfo     Servers
//	getShardingInfo                                  Items
//
// # Guarantees
//
// A switch is durable: it stands in the registry until somebody takes it back, over
// restarts of everything. A call that changes something returns nil once the registry
// says what was asked for, whoever wrote it, and may be repeated after any error. A
// commit whose answer was lost is settled before that.
//
// A configuration is validated before it is written, and only written over the very one
// that was read. A job is removed only while no instance of it is registered, in a commit
// that proves it; nobody makes it again by accident (Readmit). Reconcile deletes what it
// can prove to be left behind, in commits that fail when that is no longer true.
//
// What is read is no older than the call. Nodes that are read one after the other may
// show a job between two of its states.
//
// Secrets are hidden: Dump shows neither values of props nor jobExtraConfigurations.
//
// # Errors
//
// ErrNoJob, ErrNoItem, ErrNoRequest, ErrNoFire, ErrNotRunning, ErrChanged, *InUseError
// (ErrInUse); *core.ConfigError for what is wrong with a configuration or a name; else those of
// package registry.
//
// # Concurrency
//
// An Admin is safe for concurrent use and owns no goroutine between calls; those of ServeDumps
// end before it returns.
package admin
