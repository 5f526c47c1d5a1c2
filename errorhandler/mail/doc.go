// Package mail adds the error handler EMAIL, which sends a failure by mail, when it is imported:
//
//	import _ "github.com/elasticron/elasticron/errorhandler/mail"
//
//	email.host, email.port, email.from          needed
//	email.to                                    needed: addresses between commas; email.cc, email.bcc
//	email.username, email.passwordFile          the login, none when username is left out;
//	                                            or email.passwordEnv
//	email.useSsl                                true: TLS from the beginning; false: STARTTLS where the
//	                                            server has it
//	email.subject                               ElasticJob error message
//	email.timeoutMilliseconds                   10000, for one mail; at least 1
//
// The names and defaults are ElasticJob's, but that the password comes from a file or the
// environment. The server's certificate is always checked.
package mail
