// Package secret reads what does not belong among a job's props, since all who can read the registry see them: the
// prop names a file or an environment variable that holds it.
//
//	url, err := secret.Read(map[string]string{"webhook.urlEnv": "ALERTS_URL"}, "webhook.url")
//
// A file whose name is relative is one of the process's folder. Package config, whose files name it relative to their
// own, gives whole names.
//
// # Concurrency
//
// Everything is safe for concurrent use, as long as nobody changes the props meanwhile.
//
// # Errors
//
// Each is a *field.Error of one prop, "Props.webhook.urlEnv" for example, and repeats no secret. It is fs.ErrNotExist
// where the secret is not there.
package secret
