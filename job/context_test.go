package job

import (
	"encoding/json"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/core"
)

// The golden file is what ElasticJob makes of sharding contexts: testdata/gson/README.md. A
// script gets the same bytes, a server the same text in ASCII.
func TestTheContextIsGsons(t *testing.T) {
	golden, err := os.ReadFile("testdata/gson/contexts.tsv")
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSuffix(string(golden), "\n"), "\n")
	require.Greater(t, len(lines), 20)
	for _, line := range lines {
		part := strings.Split(line, "\t")
		require.Len(t, part, 7, line)
		text := func(i int) (s string) {
			require.NoError(t, json.Unmarshal([]byte(`"`+part[i]+`"`), &s), line)
			return s
		}
		number := func(i int) int {
			n, err := strconv.Atoi(part[i])
			require.NoError(t, err, line)
			return n
		}
		s := core.Shard{Job: text(0), TaskID: text(1), Total: number(2), JobParam: text(3), Item: number(4), Param: text(5)}
		require.Equal(t, part[6], contextOf(s))
		header := headerOf(s)
		require.Empty(t, strings.Trim(header, " !\"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqrstuvwxyz{|}~"))
		var back shardingContext
		require.NoError(t, json.Unmarshal([]byte(header), &back))
		require.Equal(t, shardingContext{s.Job, s.TaskID, s.Total, s.JobParam, s.Item, s.Param}, back)
		if len(header) == len(part[6]) { // nothing to escape
			require.Equal(t, part[6], header)
		}
	}
}
