// Package errorhandler decides what becomes of a run of an item that has failed, as
// ElasticJob's jobErrorHandlerType does:
//
//	handler, err := errorhandler.Open("WEBHOOK", map[string]string{"webhook.urlEnv": "ALERTS_URL"})
//	...
//	work = link.Chain(work, errorhandler.Link(handler), link.Retry(link.Retries{}))
//
// In a file it is the job's jobErrorHandlerType, with the settings among its props (package
// config).
//
//	LOG, THROW   the run has failed, and the scheduler tells and logs it: event.ItemEnded. Both do
//	             the same here; other runs and later fires go on, as with ElasticJob's
//	IGNORE       the run counts as success
//	STOP         as LOG, and the job is disabled in its configuration in the registry, with the
//	             reason: nothing of it begins on any instance until somebody enables it there, or
//	             an instance starts with core.JobConfig.Overwrite
//	WEBHOOK      as LOG, and the failure is sent as JSON; below
//
// Packages beside this one add more when they are imported: chat adds SLACK, DINGTALK, WECHAT
// (WECOM) and FEISHU (LARK), mail adds EMAIL. An instance's own are added with Register.
//
// # What is no failure
//
// A run whose context has ended since the scheduler stops (core.ErrStopped), its session was lost
// (core.ErrSessionLost) or somebody killed it (*request.KilledError) has not failed by itself, whatever
// its function returns: no handler hears of it, so that a shutdown during a deploy neither disables a job nor
// wakes anybody. What has run longer than its timeout has failed.
//
// # What is sent
//
// A text that names the job, the item, the fire, the instance and the error. Sending is part of
// the run: it is bounded by the timeouts, and a message that could not be sent is told as
// event.Warning. At most notify.limit messages a minute are sent for a job by one
// instance (6 by default), the first of them at once; the next one says how many were left out.
//
// # Settings
//
//	notify.limit                          messages a minute, 6
//	webhook.url                           where to, or webhook.urlFile, webhook.urlEnv
//	webhook.secretFile, .secretEnv        signs: X-Elasticron-Signature: sha256=<hex of HMAC-SHA256 of the body>
//	webhook.connectTimeoutMilliseconds    3000; the handlers of chat have the same
//	webhook.readTimeoutMilliseconds       5000; no timeout may be 0, since a run waits for its message
//
// A secret never stands in the props, which all who read the registry see: for a setting that is
// one, NAMEFile names a file that holds it, and NAMEEnv an environment variable. They are read
// when the handler is made; in a YAML file the name is relative to the folder of that file.
//
// # Concurrency
//
// Handlers are safe for concurrent use. No goroutine outlives a call.
package errorhandler
