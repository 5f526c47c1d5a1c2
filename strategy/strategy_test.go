package strategy

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
)

func TestByName(t *testing.T) {
	const (
		two   = "com.dangdang.ddframe.job.lite.api.strategy.impl."
		three = "org.apache.shardingsphere.elasticjob.infra.handler.sharding.impl."
		last  = "org.apache.shardingsphere.elasticjob.kernel.internal.sharding.strategy.type."
	)
	for name, want := range map[string]string{
		"":               "AVG_ALLOCATION",
		"AVG_ALLOCATION": "AVG_ALLOCATION",
		"avg_allocation": "AVG_ALLOCATION",
		"ODEVITY":        "ODEVITY",
		"ROUND_ROBIN":    "ROUND_ROBIN",
		"Round_Robin":    "ROUND_ROBIN",
		"STICKY":         "STICKY",

		two + "AverageAllocationJobShardingStrategy":   "AVG_ALLOCATION",
		two + "OdevitySortByNameJobShardingStrategy":   "ODEVITY",
		two + "RotateServerByNameJobShardingStrategy":  "ROUND_ROBIN",
		three + "AverageAllocationJobShardingStrategy": "AVG_ALLOCATION",
		three + "OdevitySortByNameJobShardingStrategy": "ODEVITY",
		three + "RoundRobinByNameJobShardingStrategy":  "ROUND_ROBIN",
		last + "AverageAllocationJobShardingStrategy":  "AVG_ALLOCATION",
		last + "OdevitySortByNameJobShardingStrategy":  "ODEVITY",
		last + "RoundRobinByNameJobShardingStrategy":   "ROUND_ROBIN",
	} {
		s, err := ByName(name)
		require.NoError(t, err, name)
		require.Equal(t, want, s.Name(), name)
	}
}

func TestByNameRefuses(t *testing.T) {
	for _, name := range []string{"RANDOM", " ", "AverageAllocationJobShardingStrategy", "com.acme.OurStrategy"} {
		s, err := ByName(name)
		require.Nil(t, s)
		require.ErrorIs(t, err, ErrUnknown, name)
		require.NotErrorIs(t, err, errors.ErrUnsupported, name)
	}
	_, err := ByName("RANDOM")
	require.EqualError(t, err, `strategy: unknown strategy "RANDOM"; there are: AVG_ALLOCATION, ODEVITY, ROUND_ROBIN, STICKY`)
}

func TestByNameRefusesSingleShardingBalance(t *testing.T) {
	for _, name := range []string{
		"SINGLE_SHARDING_BALANCE",
		"single_sharding_balance",
		"org.apache.shardingsphere.elasticjob.kernel.internal.sharding.strategy.type.SingleShardingBalanceJobShardingStrategy",
	} {
		s, err := ByName(name)
		require.Nil(t, s)
		require.ErrorIs(t, err, errors.ErrUnsupported, name)
		require.NotErrorIs(t, err, ErrUnknown, name)
		require.ErrorContains(t, err, name)
		require.ErrorContains(t, err, "clock")
		require.ErrorContains(t, err, "use ROUND_ROBIN or STICKY")
	}
}

func TestNames(t *testing.T) {
	names := Names()
	require.Equal(t, []string{"AVG_ALLOCATION", "ODEVITY", "ROUND_ROBIN", "STICKY"}, names)
	names[0] = "changed"
	require.Equal(t, "AVG_ALLOCATION", Names()[0])
}

func TestNothingToAssign(t *testing.T) {
	for _, s := range builtin {
		for _, in := range []Input{{}, {Job: "job", Total: 3}, {Total: -1}, {Total: 3, Previous: Assignment{"gone": {0, 1, 2}}}} {
			require.Empty(t, cmp.Diff(Assignment{}, s.Assign(in)), s.Name())
			require.NoError(t, s.Assign(in).Check(in))
		}
		for _, total := range []int{0, -1, -1 << 31} {
			got := s.Assign(Input{Instances: []string{"a", "b"}, Total: total, Previous: Assignment{"a": {0, -1}}})
			require.Empty(t, cmp.Diff(Assignment{"a": {}, "b": {}}, got), s.Name())
		}
	}
}

func TestAssignReadsInstancesAsASet(t *testing.T) {
	for _, s := range builtin {
		in := Input{Job: "job", Instances: []string{"b", "a", "b", "a", "b"}, Total: 5}
		want := s.Assign(Input{Job: "job", Instances: []string{"a", "b"}, Total: 5})
		require.Empty(t, cmp.Diff(want, s.Assign(in)), s.Name())
		require.Equal(t, []string{"b", "a", "b", "a", "b"}, in.Instances, "the input is left alone")
	}
}

// Invalid UTF-8 all looks like U+FFFD to Java, yet these are two instances.
func TestAssignTellsInvalidUTF8Apart(t *testing.T) {
	for _, s := range builtin {
		got := s.Assign(Input{Instances: []string{"\xff", "\xfe"}, Total: 2})
		require.Empty(t, cmp.Diff(got, s.Assign(Input{Instances: []string{"\xfe", "\xff"}, Total: 2})), s.Name())
		require.Len(t, got, 2)
	}
}

// Java fails with an index error here: its Math.abs leaves this hash negative.
func TestRoundRobinOfLeastHash(t *testing.T) {
	got := RoundRobin{}.Assign(Input{Job: "polygenelubricants", Instances: []string{"a", "b", "c"}, Total: 3})
	// 2147483648 mod 3 = 2: the third in descending order begins.
	require.Empty(t, cmp.Diff(Assignment{"a": {0}, "c": {1}, "b": {2}}, got))
}

func TestListsCanBeAppendedTo(t *testing.T) {
	a := AvgAllocation{}.Assign(Input{Instances: []string{"a", "b"}, Total: 4})
	a["b"] = append(a["b"], 99)
	require.Empty(t, cmp.Diff(Assignment{"b": {0, 1, 99}, "a": {2, 3}}, a))
}

func TestOwners(t *testing.T) {
	a := Assignment{"x": {0, 3, -1, 99}, "y": {1, 3}, "w": {3}}
	require.Equal(t, []string{"x", "y", "", "w"}, a.Owners(4))
	require.Empty(t, a.Owners(0))
	require.Empty(t, a.Owners(-5))
	require.Equal(t, []string{""}, Assignment(nil).Owners(1))
}

func TestCheck(t *testing.T) {
	in := Input{Instances: []string{"a", "b"}, Total: 3}
	for _, good := range []Assignment{
		{"a": {0, 2}, "b": {1}},
		{"a": {0, 1, 2}},
		{"a": {0, 1, 2}, "b": nil},
	} {
		require.NoError(t, good.Check(in))
	}
	for want, bad := range map[string]Assignment{
		`strategy: instance "c" was not asked for`:                     {"a": {0, 1, 2}, "c": {}},
		`strategy: item 3 of instance "b" is not one of 0 to 2`:        {"a": {0, 1, 2}, "b": {3}},
		`strategy: item -1 of instance "a" is not one of 0 to 2`:       {"a": {-1, 0, 1, 2}},
		`strategy: item 2 is given twice, to "a" and "b"`:              {"a": {0, 2}, "b": {1, 2}},
		`strategy: item 1 is given twice, to "a" and "a"`:              {"a": {0, 1, 1, 2}},
		`strategy: items of instance "a" are not ascending: 0 after 2`: {"a": {2, 0}, "b": {1}},
		`strategy: item 1 of 3 is given to nobody`:                     {"a": {0}, "b": {2}},
		`strategy: item 0 of 3 is given to nobody`:                     nil,
	} {
		require.EqualError(t, bad.Check(in), want)
	}
	require.NoError(t, Assignment(nil).Check(Input{Total: 3}), "without instances there is nobody to own an item")
	require.Error(t, Assignment{"a": {0}}.Check(Input{Total: 3}))
}
