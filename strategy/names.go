package strategy

import (
	"errors"
	"fmt"
	"strings"
)

// ErrUnknown: no strategy has this name. ByName.
var ErrUnknown = errors.New("unknown strategy")

// builtin holds the strategies of this package; the first is the default.
var builtin = []Strategy{AvgAllocation{}, Odevity{}, RoundRobin{}, Sticky{}}

// Names lists what ByName takes, without the class names: AVG_ALLOCATION, the
// default, ODEVITY, ROUND_ROBIN and STICKY. The slice belongs to the caller.
func Names() []string {
	names := make([]string, len(builtin))
	for i, s := range builtin {
		names[i] = s.Name()
	}
	return names
}

// ByName finds a strategy as a job's configuration spells it: one of Names, in
// upper or lower case; "" for the default; or the class name of ElasticJob's own
// strategy in 2.x or 3.x. Other names are ErrUnknown, and the message lists those
// there are. SINGLE_SHARDING_BALANCE is errors.ErrUnsupported.
func ByName(name string) (Strategy, error) {
	wanted := name
	switch {
	case name == "":
		return builtin[0], nil
	case classes[name] != "":
		wanted = classes[name]
	}
	for _, s := range builtin {
		if strings.EqualFold(s.Name(), wanted) {
			return s, nil
		}
	}
	if strings.EqualFold(wanted, singleBalance) {
		return nil, fmt.Errorf("strategy: %q: %w: it depends on the clock and on a node outside the assignment; "+
			"use ROUND_ROBIN or STICKY, on every member of the job", name, errors.ErrUnsupported)
	}
	return nil, fmt.Errorf("strategy: %w %q; there are: %s", ErrUnknown, name, strings.Join(Names(), ", "))
}

const singleBalance = "SINGLE_SHARDING_BALANCE"

// classes maps the class names that ElasticJob has used for its strategies to
// names: of 2.x, which stores them in jobShardingStrategyClass, of 3.0.0 to
// 3.0.4, and of 3.0.5.
var classes = map[string]string{
	"com.dangdang.ddframe.job.lite.api.strategy.impl.AverageAllocationJobShardingStrategy":  "AVG_ALLOCATION",
	"com.dangdang.ddframe.job.lite.api.strategy.impl.OdevitySortByNameJobShardingStrategy":  "ODEVITY",
	"com.dangdang.ddframe.job.lite.api.strategy.impl.RotateServerByNameJobShardingStrategy": "ROUND_ROBIN",

	"org.apache.shardingsphere.elasticjob.infra.handler.sharding.impl.AverageAllocationJobShardingStrategy": "AVG_ALLOCATION",
	"org.apache.shardingsphere.elasticjob.infra.handler.sharding.impl.OdevitySortByNameJobShardingStrategy": "ODEVITY",
	"org.apache.shardingsphere.elasticjob.infra.handler.sharding.impl.RoundRobinByNameJobShardingStrategy":  "ROUND_ROBIN",

	"org.apache.shardingsphere.elasticjob.kernel.internal.sharding.strategy.type.AverageAllocationJobShardingStrategy":     "AVG_ALLOCATION",
	"org.apache.shardingsphere.elasticjob.kernel.internal.sharding.strategy.type.OdevitySortByNameJobShardingStrategy":     "ODEVITY",
	"org.apache.shardingsphere.elasticjob.kernel.internal.sharding.strategy.type.RoundRobinByNameJobShardingStrategy":      "ROUND_ROBIN",
	"org.apache.shardingsphere.elasticjob.kernel.internal.sharding.strategy.type.SingleShardingBalanceJobShardingStrategy": singleBalance,
}
