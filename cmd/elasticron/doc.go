// Command elasticron is the helper of a user who comes from ElasticJob, and of one who writes a
// configuration.
//
//	elasticron convert application.yml >jobs.yaml
//	elasticron check jobs.yaml
//	elasticron schema >jobs.schema.json
//
// convert makes Elasticron's file of ElasticJob's: of the block elasticjob of a Spring Boot
// application, or, with -registry, of what ElasticJob 1, 2 or 3 wrote to ZooKeeper. Passwords are
// taken out. What is different afterwards stands at the top of the new file, and on the standard
// error. It writes all its files or none, so that it can be repeated.
//
// check says what a program would refuse in a file, when it loads it and when it makes its jobs, and
// when the jobs of a sound file fire next. Names that a program may bring are notes.
//
// The exit code is 0 for success; 1 for failure, with the reason on the standard error; 2 for a
// command line that is wrong; 3 for a file that was converted or checked, of which something of
// ElasticJob has no counterpart, or which was converted and does not load yet.
package main
