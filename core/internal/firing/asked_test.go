package firing

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/core/request"
	"github.com/elasticron/elasticron/internal/layout"
	"github.com/elasticron/elasticron/internal/layout/ledger"
	"github.com/elasticron/elasticron/registry"
)

// However many errors there are, and whatever they say, each item's outcome fits the node.
func TestEachOutcomeFitsWhateverTheErrorsSay(t *testing.T) {
	const total = 10_000
	long := strings.Repeat("<&>世界 ", maxTexts/10)
	for name, say := range map[string]func(n int) string{
		"each another":   func(n int) string { return fmt.Sprintf("item %d: connection refused", n) },
		"short":          func(n int) string { return fmt.Sprint(n) },
		"long":           func(n int) string { return fmt.Sprint(n) + long[:2000] },
		"with escapes":   func(n int) string { return long[10*(n%4):] },
		"all the same":   func(int) string { return "no paper" },
		"one of a kind":  func(n int) string { return strings.Repeat("x", n%total/(total-2)) },
		"without a text": func(int) string { return "" },
	} {
		t.Run(name, func(t *testing.T) {
			ended := map[int]outcome{}
			for n := range total {
				if ended[n] = (outcome{word: request.Succeeded}); n%3 != 0 {
					ended[n] = outcome{request.Failed, say(n)}
				}
			}
			told := answers(ended)
			require.Less(t, len(layout.MarshalResults(layout.Results{Results: told})), registry.PortableLimits().MaxValue)
			failed, texts := 0, 0
			for _, a := range told {
				of, err := ledger.ParseRange(a.Items, total)
				require.NoError(t, err)
				for _, n := range of {
					require.Equal(t, string(ended[n].word), a.Outcome)
					require.True(t, strings.HasPrefix(ended[n].text, a.Text))
					delete(ended, n)
				}
				if a.Outcome == string(request.Failed) {
					failed += len(of)
				}
				if a.Text != "" {
					texts++
				}
			}
			require.Empty(t, ended, "an item that has ended has no outcome")
			require.Equal(t, total*2/3, failed)
			if say(total-2) != "" {
				require.NotZero(t, texts)
			}
		})
	}
}
