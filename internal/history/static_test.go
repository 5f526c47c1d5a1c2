package history

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// static is a history of a job with static sharding.
func static(h []Record) []Record {
	return change(h, func(r Record) bool { return r.Kind == Configured }, func(r *Record) {
		c := *r.Config
		c.Static = true
		r.Config = &c
	})
}

// by has another instance run one fire of an item.
func by(who, instance string, item, due int, h []Record) []Record {
	return change(h, fireOf(item, due), func(r *Record) {
		if r.Who = who; r.Instance != "" {
			r.Instance, r.Session = instance, "s2"
		}
	})
}

// again says that one fire of an item has run again.
func again(item, due int, h []Record) []Record {
	return change(h, of(Entered, item, due), func(r *Record) { r.Redo = true })
}

func TestTheRulesOfStaticSharding(t *testing.T) {
	away := func(edit func(dead *Holding)) []Record {
		return static(snapshot(func(s *Snapshot) {
			dead := Ledger{Instance: "10.0.0.9@-@x-1", Epoch: 1, Total: 2, Items: s.Ledgers[0].Items[1:]}
			edit(&dead.Items[0])
			s.Ledgers[0].Items = s.Ledgers[0].Items[:1]
			s.Ledgers = append(s.Ledgers, dead)
		}))
	}
	total := at(2500, Record{Kind: Configured, Who: "driver", Job: "a", Config: &Config{Cron: everySecond, Total: 3, Static: true}})
	early := total
	early.At, early.Wall = ms(900), wall(900)
	soon, back := total, total
	soon.At, soon.Wall = ms(500), wall(500)
	back.Config = &Config{Cron: everySecond, Total: 2, Static: true}
	off := at(2500, Record{Kind: Configured, Who: "driver", Job: "a", Config: &Config{Cron: everySecond, Total: 2}})
	for name, c := range map[string]struct {
		h    []Record
		want Invariant
		says string
	}{
		"sound":                   {static(sound()), "", ""},
		"another begins it":       {static(by("w2", "i2", 1, 3000, sound())), Bound, "entered by i2, and it is bound to i1"},
		"without static sharding": {by("w2", "i2", 1, 3000, sound()), "", ""},
		"it runs again elsewhere": {static(again(1, 3000, by("w2", "i2", 1, 3000, sound()))), "", ""},
		"another total, before it ran": {
			static(append(without(by("w2", "i2", 1, 3000, sound()), func(r Record) bool { return r.Item == 1 && r.Due.Before(wall(2500)) }), early)), "", "",
		},
		"another total since its epoch began, before it ran, and back": {append(static(by("w2", "i2", 1, 3000, sound())), soon, back), "", ""},
		"another total before its epoch began": {
			append(static(by("w2", "i2", 1, 3000, sound())), func() []Record {
				soon, back := soon, back
				soon.At, back.At = ms(100), ms(200)
				return []Record{soon, back}
			}()...), Bound, "entered by i2, and it is bound to i1",
		},
		"another total":               {append(static(by("w2", "i2", 1, 3000, sound())), total), "", ""},
		"it was switched off":         {append(static(by("w2", "i2", 1, 3000, sound())), off), "", ""},
		"its instance is away":        {away(func(*Holding) {}), "", ""},
		"its instance is there":       {away(func(h *Holding) { h.Bound = "i2" }), Quiescence, "whose life is over, holds 1 items"},
		"what it ran is to run again": {away(func(h *Holding) { h.Redo = wall(5000) }), Quiescence, "whose life is over, holds 1 items"},
		"lent, and its owner is there": {
			static(snapshot(func(s *Snapshot) { s.Ledgers[0].Items[1].Bound = "i2" })), Quiescence, "it is lent to i1, and belongs to i2",
		},
		"lent, and its owner is away": {static(snapshot(func(s *Snapshot) { s.Ledgers[0].Items[1].Bound = "x" })), "", ""},
		"lent, without static sharding": {
			snapshot(func(s *Snapshot) { s.Ledgers[0].Items[1].Bound = "x" }), Quiescence, "it is lent to i1, and belongs to x",
		},
	} {
		t.Run(name, func(t *testing.T) {
			rules := strict
			rules.Tell, rules.Owned = 0, 0
			found := Check(c.h, rules).Violations
			if c.want == "" {
				for _, v := range found {
					require.NotContains(t, []Invariant{Bound, Quiescence, Late}, v.Invariant, v.Text)
				}
				return
			}
			require.NotEmpty(t, found)
			require.Equal(t, c.want, found[0].Invariant, found[0].Text)
			require.Contains(t, found[0].Text, c.says)
		})
	}
	require.Equal(t, "web", nameOf("10.0.0.1@-@web-abcdefghij"))
	require.Equal(t, "web-1", nameOf("10.0.0.1@-@web-1-abcdefghij"))
	require.Equal(t, "i1", nameOf("i1"))
	require.Equal(t, "77", nameOf("10.0.0.1@-@77"))
}
