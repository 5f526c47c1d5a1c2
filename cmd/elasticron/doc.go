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
// error.
//
// The exit code is 0 for success; 1 for failure, with the reason on the standard error; 2 for a
// command line that is wrong; 3 for a file that was converted, of which something has no
// counterpart, or which does not load yet.
package main
