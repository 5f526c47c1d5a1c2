package layout

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/elasticron/elasticron/internal/field"
)

func TestParseItemParams(t *testing.T) {
	for s, want := range map[string]map[int]string{
		"":                     {},
		"0=a":                  {0: "a"},
		"0=a,1=b":              {0: "a", 1: "b"},
		" 0 = a ,\n1=\tb c , ": nil,
		" 0 = a ,\n1=\tb c ":   {0: "a", 1: "b c"},
		"0=a,":                 {0: "a"},
		"0=a,,":                {0: "a"},
		"7=北京,2=x:y;z":         {7: "北京", 2: "x:y;z"},
		"00=a":                 {0: "a"},
		"2147483647=a":         {2147483647: "a"},
		"0=\u00a0":             {0: "\u00a0"},
	} {
		got, err := ParseItemParams(s)
		if want == nil {
			require.Error(t, err, "%q", s)
			continue
		}
		require.NoError(t, err, "%q", s)
		require.Equal(t, want, got, "%q", s)
	}
}

func TestParseItemParamsRefuses(t *testing.T) {
	for s, says := range map[string]string{
		"a":            "want item=parameter",
		" ":            "want item=parameter",
		",0=a":         "want item=parameter",
		"0=a,,1=b":     "want item=parameter",
		"0=a,b":        "can hold no comma",
		"x=a":          `item "x"`,
		"=a":           `item ""`,
		"1.5=a":        "whole number",
		"-1=a":         "whole number",
		"2147483648=a": "whole number",
		"3=":           `item "3" an empty parameter`,
		"3= ":          `item "3" an empty parameter`,
		"3=a=b":        `item "3" a parameter with "="`,
		"3=a=":         `item "3" a parameter with "="`,
		"3=a,3=b":      "item 3 twice",
	} {
		_, err := ParseItemParams(s)
		var wrong *field.Error
		require.ErrorAs(t, err, &wrong, "%q", s)
		require.Equal(t, "shardingItemParameters", wrong.Field)
		require.Contains(t, err.Error(), says, "%q", s)
		require.NotContains(t, err.Error(), "\n")
	}
}

func TestFormatItemParams(t *testing.T) {
	s, err := FormatItemParams(map[int]string{10: "k", 2: "b", 0: "a"})
	require.NoError(t, err)
	require.Equal(t, "0=a,2=b,10=k", s)
	s, err = FormatItemParams(nil)
	require.NoError(t, err)
	require.Empty(t, s)
	for item, value := range map[int]string{0: "a,b", 1: "a=b", 2: "", 3: " a", 4: "a\n", -1: "a", 1 << 31: "a"} {
		_, err := FormatItemParams(map[int]string{item: value})
		require.ErrorContains(t, err, "cannot hold the parameter of item ")
	}
}

func TestItemParamsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		params := rapid.MapOf(rapid.IntRange(-1, 1<<31), rapid.String()).Draw(t, "params")
		s, err := FormatItemParams(params)
		if err != nil {
			return
		}
		back, err := ParseItemParams(s)
		require.NoError(t, err)
		require.Equal(t, params, back)
	})
}
