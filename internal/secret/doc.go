// Package secret reads what does not belong among a job's props, since all who can read the registry see them: the
// prop names a file or an environment variable that holds it.
//
//	url, err := secret.Read(map[string]string{"webhook.urlEnv": "ALERTS_URL"}, "webhook.url")
//
// # Concurrency
//
// Everything is safe for concurrent use, as long as nobody changes the props meanwhile.
//
// # Errors
//
// Each is a *field.Error of one prop, "Props.webhook.urlEnv" for example, and repeats no secret.
package secret
