package config_test

import (
	"context"
	"fmt"

	"github.com/elasticron/elasticron/config"
	"github.com/elasticron/elasticron/core"
	_ "github.com/elasticron/elasticron/registry/memory" // registers memory://
)

// A program that runs the jobs of a file.
func ExampleConfig_Bind() {
	cfg, err := config.Parse("jobs.yaml", []byte(`
registry:
  url: ${EXAMPLE_REGISTRY:-memory://example/shop}
jobs:
  hello:
    cron: 0/5 * * * * ?
    shardingTotalCount: 3
    shardingItemParameters: 0=Beijing,1=Shanghai,2=Shenzhen
`)) // config.Load("jobs.yaml") reads a file
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	reg, err := cfg.Open(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer reg.Close()
	hello := core.JobFunc(func(context.Context, core.Shard) error { return nil })
	sched := core.New(reg)
	if err := cfg.Bind(sched, map[string]core.Job{"hello": hello}); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(cfg)
	fmt.Println(sched.Start(ctx), sched.Stop(ctx))
	// Output:
	// registry memory://example/shop, jobs ["hello"]
	// <nil> <nil>
}

// All that is wrong with a file is told at once, a line for each.
func ExampleParse() {
	_, err := config.Parse("jobs.yaml", []byte(`
registry:
  url: etcd://jo:secret@127.0.0.1:2379/shop
jobs:
  hello:
    cron: 0 2 * * *
    shards: 3
`))
	fmt.Println(err)
	// Output:
	// jobs.yaml:3:3: registry.url: holds a password, which does not belong in a URL; put it in a file that passwordFile names, or in an environment variable that passwordEnv names
	// jobs.yaml:6:11: jobs.hello.cron: has 5 fields, Quartz has 6, seconds first, or 7 with the year; write 0 0 2 * * ?
	// jobs.yaml:7:5: jobs.hello.shards: is not a key here; did you mean shardingTotalCount?
}

func ExampleConvert() {
	old := `
elasticjob:
  regCenter: {serverLists: 'zk:2181', namespace: shop, sessionTimeoutMilliseconds: 30000, digest: 'jo:sesame'}
  jobs:
    report:
      elasticJobType: SCRIPT
      cron: ${REPORT_CRON:0 0 2 * * ?}
      shardingTotalCount: 1
      monitorExecution: true
      misfire: true
      reconcileIntervalMinutes: 10
      props: {script.command.line: report.sh}
`
	made, err := config.Convert("application.yml", []byte(old), config.ConvertOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(string(made.YAML))
	// Output:
	// # Made of application.yml by elasticron convert.
	// # - line 3: elasticjob.regCenter.digest: goes into the environment variable REGISTRY_PASSWORD
	// registry:
	//   url: zookeeper://zk:2181/shop?session-timeout=30s
	//   username: jo
	//   passwordEnv: REGISTRY_PASSWORD
	// jobs:
	//   report:
	//     type: SCRIPT
	//     elasticJobClass: SCRIPT
	//     cron: ${REPORT_CRON:-0 0 2 * * ?}
	//     shardingTotalCount: 1
	//     monitorExecution: true
	//     misfire: true
	//     reconcileInterval: 10m
	//     props:
	//       script.command.line: report.sh
}
