package barrier

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/elasticron/elasticron/internal/layout"
)

var start = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

func at(s int) time.Time { return start.Add(time.Duration(s) * time.Second) }

func TestVerdicts(t *testing.T) {
	listened := Rule{On: true, Wait: 10 * time.Second}
	tests := map[string]struct {
		rule  Rule
		claim layout.Cursor
		want  Verdict // of an item that is due at 5
	}{
		"nobody listens":                       {Rule{}, layout.Cursor{}, Starts},
		"no round was claimed yet":             {listened, layout.Cursor{}, Waits},
		"an earlier round":                     {listened, layout.Cursor{Due: at(4), Done: true}, Waits},
		"an earlier round, refused":            {listened, layout.Cursor{Due: at(4), Done: true, Failed: true}, Waits},
		"the listener is called":               {listened, layout.Cursor{Due: at(5)}, Waits},
		"the listener has returned":            {listened, layout.Cursor{Due: at(5), Done: true}, Starts},
		"it has refused":                       {listened, layout.Cursor{Due: at(5), Done: true, Failed: true}, Refused},
		"a later round together with this one": {listened, layout.Cursor{Due: at(7), Since: at(4), Done: true}, Starts},
		"they are refused together":            {listened, layout.Cursor{Due: at(7), Since: at(4), Done: true, Failed: true}, Refused},
		"a later round is called for":          {listened, layout.Cursor{Due: at(7), Since: at(5)}, Starts},
		"a later round was refused, not this":  {listened, layout.Cursor{Due: at(7), Since: at(5), Done: true, Failed: true}, Starts},
		"this was refused, and a later round is called for": {
			listened, layout.Cursor{Due: at(7), Since: at(5), Refused: layout.Rounds{After: at(4), UpTo: at(5)}}, Refused,
		},
		"one before was refused, and a later round is called for": {
			listened, layout.Cursor{Due: at(7), Since: at(5), Refused: layout.Rounds{After: at(3), UpTo: at(4)}}, Starts,
		},
		"who was called died, and goes unheard": {listened, layout.Cursor{Due: at(5), Done: true, Lost: true}, Starts},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			b := &Barrier{}
			require.Empty(t, b.Put(tt.rule, start))
			require.Empty(t, b.Claim(tt.claim, start))
			require.Equal(t, tt.want, b.Arrive(1, at(5), start), "it comes after the claim")
			require.Equal(t, tt.want == Waits, b.Leave(1))
			if !tt.rule.On {
				return
			}
			b = &Barrier{}
			b.Put(tt.rule, start)
			require.Equal(t, Waits, b.Arrive(1, at(5), start))
			released := b.Claim(tt.claim, at(2))
			if tt.want == Waits {
				require.Empty(t, released)
				return
			}
			require.Equal(t, []Release{{Item: 1, Due: at(5), Waited: 2 * time.Second, Verdict: tt.want}}, released, "it was there before")
		})
	}
}

func TestWaitsEnd(t *testing.T) {
	for _, fail := range []bool{false, true} {
		late := Late
		if fail {
			late = LateFails
		}
		rule := Rule{On: true, Wait: 10 * time.Second, Fail: fail}
		b := &Barrier{}
		b.Put(rule, start)
		_, ok := b.Next()
		require.False(t, ok)
		b.Arrive(3, at(5), at(5))
		b.Arrive(1, at(5), at(7))
		next, ok := b.Next()
		require.True(t, ok)
		require.Equal(t, at(15), next)
		require.Empty(t, b.Tick(at(15).Add(-1)))
		require.Equal(t, []Release{{3, at(5), 10 * time.Second, late}}, b.Tick(at(15)))
		rule.Wait = 3 * time.Second
		require.Equal(t, []Release{{1, at(5), 8 * time.Second, late}}, b.Put(rule, at(15)), "a shorter wait counts at once")

		b.Arrive(2, at(20), at(20))
		require.Equal(t, []Release{{2, at(20), time.Second, late}}, b.Put(Rule{}, at(21)), "nobody listens any more")

		b.Put(rule, at(21))
		b.Arrive(2, at(21), at(21))
		require.Equal(t, []Release{{2, at(21), 0, Starts}}, b.End(at(21)))
	}
}

// Whatever happens, in whatever order: an item that waits is released once, none later than its
// wait, and none before the claim of its round is done.
func TestEveryItemIsReleasedOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := &Barrier{}
		waiting := map[int]wait{}
		var rule Rule
		var claim layout.Cursor
		now := start
		end := func(released []Release) {
			for _, r := range released {
				w, waits := waiting[r.Item]
				require.True(t, waits, "%v was not waiting", r)
				delete(waiting, r.Item)
				require.Equal(t, w.due, r.Due)
				require.Equal(t, now.Sub(w.since), r.Waited)
				if r.Verdict == Starts || r.Verdict == Refused {
					require.False(t, r.Due.After(claim.Due))
					require.False(t, r.Due.After(claim.Since) && claim.Open())
				}
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				for item, w := range waiting {
					require.True(t, rule.On, "%d waits for nobody", item)
					require.True(t, w.due.After(claim.Due) || (claim.Open() && w.due.After(claim.Since)), "%d", item)
				}
				next, ok := b.Next()
				require.Equal(t, len(waiting) > 0, ok)
				for _, w := range waiting {
					require.False(t, next.After(w.since.Add(rule.Wait)))
				}
			},
			"arrive": func(t *rapid.T) {
				item, due := rapid.IntRange(0, 5).Draw(t, "item"), at(rapid.IntRange(0, 20).Draw(t, "due"))
				if _, waits := waiting[item]; waits {
					return
				}
				if b.Arrive(item, due, now) == Waits {
					waiting[item] = wait{due, now}
				}
			},
			"leave": func(t *rapid.T) {
				item := rapid.IntRange(0, 5).Draw(t, "item")
				_, waits := waiting[item]
				require.Equal(t, waits, b.Leave(item))
				delete(waiting, item)
			},
			"claim": func(t *rapid.T) {
				if claim.Open() {
					claim.Done, claim.Failed = true, rapid.Bool().Draw(t, "failed")
				} else {
					claim = layout.Cursor{Due: claim.Due.Add(time.Duration(rapid.IntRange(1, 4).Draw(t, "on")) * time.Second), Since: claim.Due}
					if claim.Since.IsZero() {
						claim.Due = at(1)
					}
				}
				end(b.Claim(claim, now))
			},
			"put": func(t *rapid.T) {
				rule = Rule{rapid.Bool().Draw(t, "on"), time.Duration(rapid.IntRange(1, 9).Draw(t, "wait")) * time.Second, rapid.Bool().Draw(t, "fail")}
				end(b.Put(rule, now))
			},
			"tick": func(t *rapid.T) {
				now = now.Add(time.Duration(rapid.IntRange(0, 5).Draw(t, "pause")) * time.Second)
				end(b.Tick(now))
				for item, w := range waiting {
					require.Less(t, now.Sub(w.since), rule.Wait, "%d", item)
				}
			},
		})
	})
}
