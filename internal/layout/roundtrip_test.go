package layout

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// yamlText draws what MarshalConfig can hold, and likes what is awkward.
func yamlText() *rapid.Generator[string] {
	awkward := rapid.StringOfN(rapid.SampledFrom([]rune("ab01.:-+#&*!|>'\"%@`{}[],?=~<\\/ \t\r\n\u00a0é北😀")), 0, 120, -1)
	anything := rapid.String().Filter(func(s string) bool {
		var w yamlWriter
		w.check("", s)
		return errors.Join(w.errs...) == nil
	})
	words := rapid.SampledFrom([]string{"", "null", "~", "true", "010", "1:30", "2026-11-21", ".inf", "<<", "- a", "a: b"})
	return rapid.OneOf(awkward, anything, words)
}

func TestConfigRoundTrip(t *testing.T) {
	text, small := yamlText(), rapid.IntRange(-1<<31, 1<<31-1)
	key := text.Filter(func(s string) bool {
		var w yamlWriter
		w.checkKey("", s)
		return errors.Join(w.errs...) == nil
	})
	rapid.Check(t, func(t *rapid.T) {
		c := Config{
			Cron: text.Draw(t, "cron"), Description: text.Draw(t, "description"), Disabled: rapid.Bool().Draw(t, "disabled"),
			Failover: rapid.Bool().Draw(t, "failover"), JobErrorHandlerType: text.Draw(t, "handler"),
			JobExecutorThreadPoolSizeProviderType: text.Draw(t, "pool"),
			JobName:                               rapid.StringMatching(`[a-z0-9~:# '"-]{0,20}x`).Draw(t, "name"), JobParameter: text.Draw(t, "parameter"),
			JobShardingStrategyType: text.Draw(t, "strategy"), Label: text.Draw(t, "label"), MaxTimeDiffSeconds: small.Draw(t, "diff"),
			Misfire: rapid.Bool().Draw(t, "misfire"), MonitorExecution: rapid.Bool().Draw(t, "monitor"), Overwrite: rapid.Bool().Draw(t, "overwrite"),
			ReconcileIntervalMinutes: small.Draw(t, "reconcile"), ShardingItemParameters: text.Draw(t, "items"),
			ShardingTotalCount: rapid.IntRange(1, 1<<31-1).Draw(t, "total"), StaticSharding: rapid.Bool().Draw(t, "static"), TimeZone: text.Draw(t, "zone"),
		}
		c.OldThreadPoolKey = c.JobExecutorThreadPoolSizeProviderType != "" && rapid.Bool().Draw(t, "old key")
		if list := rapid.SliceOf(text.Filter(func(s string) bool { return s != "" })).Draw(t, "listeners"); len(list) > 0 {
			c.JobListenerTypes = list
		}
		if props := rapid.MapOf(key, text).Draw(t, "props"); len(props) > 0 {
			c.Props = props
		}
		if rapid.Bool().Draw(t, "extra") {
			c.JobExtraConfigurations = Opaque{text: "\n- !!org.apache.X\n  type: RDB # kept\n"}
		}
		data, err := MarshalConfig(c)
		require.NoError(t, err)
		back, err := UnmarshalConfig(data)
		require.NoError(t, err, "%s", data)
		require.Empty(t, cmp.Diff(c, back), "%s", data)
		again, err := MarshalConfig(back)
		require.NoError(t, err)
		require.Equal(t, string(data), string(again))
	})
}

func FuzzUnmarshalConfig(f *testing.F) {
	f.Add([]byte(fullText))
	f.Add([]byte(`{"jobName":"old","cron":"0 0 1 * * ?","shardingTotalCount":10,"jobProperties":{"a":[1]}}`))
	f.Add([]byte(tracing))
	f.Add([]byte("a: &a [*a]\n<<: *a\n? [x]\n: !!binary |\n  x\n"))
	for _, v := range golden[writeVector](f, "write.json")[:60] {
		f.Add([]byte(v.YAML))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		_, _ = UnmarshalInstance(data)
		c, err := UnmarshalConfig(data)
		if err != nil {
			require.NotContains(t, err.Error(), "\n")
			return
		}
		text, err := MarshalConfig(c)
		if err != nil {
			return // it holds a character that we do not write
		}
		back, err := UnmarshalConfig(text)
		require.NoError(t, err, "%s", text)
		require.Empty(t, cmp.Diff(c, back), "%s", text)
	})
}
