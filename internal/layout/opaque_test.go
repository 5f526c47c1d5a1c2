package layout

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What ElasticJob 3.0.5 writes for a job with tracing.
const tracing = `cron: 0/5 * * * * ?
jobExtraConfigurations:
- !!org.apache.shardingsphere.elasticjob.kernel.tracing.yaml.YamlTracingConfiguration
  tracingStorageConfiguration: !!org.apache.shardingsphere.elasticjob.tracing.rdb.yaml.YamlDataSourceConfiguration
    dataSourceClassName: com.zaxxer.hikari.HikariDataSource
    props:
      jdbcUrl: jdbc:mysql://db/x
      password: 'it''s: *secret'
      port: 010
  type: RDB
jobName: demo
shardingTotalCount: 3
`

func readExtra(t *testing.T, text string) Config {
	t.Helper()
	c, err := UnmarshalConfig([]byte(text))
	require.NoError(t, err, text)
	return c
}

func TestExtraConfigurationsAreKeptToTheByte(t *testing.T) {
	const open, end = "cron: x\njobName: demo\n", "shardingTotalCount: 3\n"
	for name, extra := range map[string]string{
		"tracing":  strings.TrimSuffix(strings.TrimPrefix(tracing, "cron: 0/5 * * * * ?\n"), "jobName: demo\nshardingTotalCount: 3\n"),
		"indented": "jobExtraConfigurations:\n    - !!a.B\n      c:   d   # why\n\n    - e\n",
		"comments": "jobExtraConfigurations: # tracing\n# more\n- a: \"x\\ty\"\n",
		"flow":     "jobExtraConfigurations: [ {a: 'b',\n   c: [d]} ]\n",
		"block":    "jobExtraConfigurations:\n- |+\n  a\n\n  b\n\n- >-\n  c\n",
		"anchors":  "jobExtraConfigurations:\n- &a {b: c}\n- *a\n",
	} {
		for where, text := range map[string]string{"middle": open + extra + end, "last": open + end + extra, "first": extra + open + end} {
			c := readExtra(t, text)
			require.False(t, c.JobExtraConfigurations.IsZero())
			out, err := MarshalConfig(c)
			require.NoError(t, err)
			require.Contains(t, string(out), "\nfailover: false\n"+extra+"jobName: demo\n", "%s, %s", name, where)
			require.Equal(t, c, readExtra(t, string(out)))
		}
	}
}

// Where the text itself cannot be taken over, the YAML is written anew.
func TestExtraConfigurationsAreKeptByMeaning(t *testing.T) {
	for name, text := range map[string]string{
		"JSON":             `{"jobName":"demo","shardingTotalCount":3,"jobExtraConfigurations":[{"a":"010","b":[true,null]}]}`,
		"flow":             `{jobName: demo, shardingTotalCount: 3, jobExtraConfigurations: [ {a: '010', b: [true, null]} ] }`,
		"indented":         "  jobName: demo\n  shardingTotalCount: 3\n  jobExtraConfigurations:\n  - a: '010'\n    b: [true, null]\n",
		"explicit key":     "jobName: demo\nshardingTotalCount: 3\n? jobExtraConfigurations\n: - a: '010'\n    b: [true, null]\n",
		"quoted key":       "jobName: demo\nshardingTotalCount: 3\n'jobExtraConfigurations':\n- a: '010'\n  b: [true, null]\n",
		"next is explicit": "jobExtraConfigurations:\n- a: '010'\n  b: [true, null]\n? jobName\n: demo\n? shardingTotalCount\n: 3\n",
		"end of document":  "jobName: demo\nshardingTotalCount: 3\njobExtraConfigurations:\n- a: '010'\n  b: [true, null]\n...\n",
		"no end of line":   "jobName: demo\nshardingTotalCount: 3\njobExtraConfigurations:\n- a: '010'\n  b: [true, null]",
		"carriage returns": "jobName: demo\r\njobExtraConfigurations:\r\n- a: '010'\r\n  b: [true, null]\r\nshardingTotalCount: 3\r\n",
		"old line ends":    "jobName: demo\rjobExtraConfigurations:\r- a: '010'\r  b: [true, null]\rshardingTotalCount: 3\r",
		"byte order mark":  "\ufeffjobExtraConfigurations:\n- a: '010'\n  b: [true, null]\njobName: demo\nshardingTotalCount: 3\n",
		"in the same line": "jobName: demo\nshardingTotalCount: 3\njobExtraConfigurations: [{a: '010', b: [true, null]}]\n",
		"directive":        "%YAML 1.1\n---\njobName: demo\nshardingTotalCount: 3\njobExtraConfigurations:\n- a: '010'\n  b: [true, null]\n",
	} {
		c := readExtra(t, text)
		out, err := MarshalConfig(c)
		require.NoError(t, err)
		root, err := parseMapping(out)
		require.NoError(t, err, "%s: %s", name, out)
		want, err := parseMapping([]byte("x: [{a: '010', b: [true, null]}]"))
		require.NoError(t, err)
		require.Equal(t, keyExtra, root.Content[6].Value, "%s: %s", name, out)
		require.True(t, sameNode(want.Content[1], root.Content[7]), "%s: %s", name, out)
		require.Equal(t, c, readExtra(t, string(out)), name)
	}
}

func TestExtraConfigurationsThatCannotBeKept(t *testing.T) {
	_, err := UnmarshalConfig([]byte("jobName: &n sesame\nshardingTotalCount: 1\njobExtraConfigurations:\n- *n\n"))
	require.ErrorContains(t, err, "line 3: jobExtraConfigurations: cannot be kept by itself")
	require.NotContains(t, err.Error(), "sesame")
}

func TestOpaque(t *testing.T) {
	var none Opaque
	require.True(t, none.IsZero())
	require.Empty(t, none.String())
	one := Opaque{text: " [a]\n"}
	require.False(t, one.Equal(none))
	require.True(t, one.Equal(Opaque{text: " [a]\n"}))
	require.Equal(t, "[hidden]", one.LogValue().String())
	require.Equal(t, "[hidden] [hidden]", fmt.Sprintf("%#v %x", one, one))
}
