package main

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/config"
	"github.com/elasticron/elasticron/core"
)

func Example() {
	fmt.Println(run(context.Background()))
	// Output:
	// item 0 of export: after 3 attempts: no such table
	// item 0 of export: after 3 attempts: no such table
	// the job is disabled, on every instance
	// <nil>
}

// A file names the handler.
func TestByFile(t *testing.T) {
	c, err := config.Parse("jobs.yaml", []byte("registry: {url: 'memory://a/b'}\njobs: {export: {cron: '* * * * * ?', shardingTotalCount: 1, jobErrorHandlerType: twice}}\n"))
	require.NoError(t, err)
	_, err = c.Work("export", core.JobFunc(func(context.Context, core.Shard) error { return nil }))
	require.NoError(t, err)
}
