package main

import (
	"context"
	"fmt"

	"github.com/elasticron/elasticron/bench/internal/contest"
)

// The contenders, as they stand in the tables.
const (
	ours         = "Elasticron"
	oursAgain    = "Elasticron, failover on" // begins are recorded ahead
	oursBare     = "Elasticron, unrecorded"
	goCronLocked = "gocron, a lock of etcd's a run"
	goCronAlone  = "gocron, no lock"
	goEtcdCron   = "go-etcd-cron"
	bareSingle   = "bare client, a commit a request"
	bareShared   = "bare client, 40 commits a request"
	bareWatching = "bare client, lives and watches alone"
)

// open makes any contender that this program can be.
func open(ctx context.Context, cfg contest.Config, tally *contest.Tally) (contest.Contender, error) {
	switch cfg.Contender {
	case ours, oursAgain, oursBare:
		return openElasticron(ctx, cfg, tally)
	case goCronLocked, goCronAlone:
		return openGoCron(ctx, cfg, tally)
	case bareSingle, bareShared:
		return openBare(ctx, cfg, tally)
	case bareWatching:
		return openBareLives(ctx, cfg)
	}
	return nil, fmt.Errorf("contender %q is none", cfg.Contender)
}
