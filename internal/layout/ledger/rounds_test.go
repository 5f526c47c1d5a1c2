package ledger

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestRounds(t *testing.T) {
	at := func(s int) time.Time { return time.Date(2026, 11, 21, 5, 0, s, 0, time.UTC) }
	before := func(s int) time.Time { return at(s).Add(-1) }
	idle := func(s int) Item { return Item{Through: at(s)} }
	runs := func(s int) Item { return Item{Through: at(s), Run: at(s)} }
	again := func(through, due int) Item { return Item{Through: at(through), Redo: Redo{Due: at(due)}} }
	for name, c := range map[string]struct {
		items              []Item
		started, completed time.Time
	}{
		"nothing":                   {nil, Always, Always},
		"all idle":                  {[]Item{idle(5), idle(5)}, at(5), at(5)},
		"one behind":                {[]Item{idle(5), idle(4)}, at(4), at(4)},
		"some begun":                {[]Item{runs(5), idle(4)}, at(4), at(4)},
		"all begun":                 {[]Item{runs(5), runs(5)}, Always, before(5)},
		"some ended":                {[]Item{runs(5), idle(5)}, at(5), before(5)},
		"one runs an older one":     {[]Item{runs(3), idle(5)}, at(5), before(3)},
		"owed again":                {[]Item{again(5, 4), idle(5)}, at(5), before(4)},
		"runs again":                {[]Item{{Through: at(5), Run: at(4), Redo: Redo{Lost: "a", Tries: 1}}, idle(5)}, at(5), before(4)},
		"lent":                      {[]Item{{Through: at(2), Bound: "a"}, idle(5)}, at(5), at(5)},
		"lent, owed again":          {[]Item{{Through: at(2), Redo: Redo{Due: at(2)}, Bound: "a"}, idle(5)}, at(5), before(2)},
		"lent, runs again":          {[]Item{{Through: at(2), Run: at(2), Bound: "a"}, idle(5)}, at(5), before(2)},
		"nothing but what is lent":  {[]Item{{Through: at(2), Bound: "a"}}, Always, Always},
		"owed again, others behind": {[]Item{again(5, 4), idle(3)}, at(3), at(3)},
	} {
		t.Run(name, func(t *testing.T) {
			l := New(1, 4)
			l.Seq = 7
			for n, it := range c.items {
				l.Set(n, it)
			}
			r := l.Rounds()
			require.Equal(t, Rounds{Seq: 7, Started: c.started, Completed: c.completed}, r)
			r.Begun = at(5)
			read, err := DecodeRounds(r.Encode())
			require.NoError(t, err)
			require.Equal(t, r, read)
		})
	}
	_, err := DecodeRounds([]byte("garbage"))
	require.Error(t, err)
}
