package history

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTheRulesOfClocks(t *testing.T) {
	within := func(h []Record) []Record {
		h = change(h, func(r Record) bool { return r.Kind == Configured }, func(r *Record) {
			c := *r.Config
			c.Within = 2 * time.Second
			r.Config = &c
		})
		// w2 leads, and w1 runs everything.
		return change(h, func(r Record) bool { return r.Kind == Led }, func(r *Record) { r.Of, r.Self = "i2", false })
	}
	set := func(when int, who string, ahead int) Record {
		return at(when, Record{Kind: ClockSet, Who: "driver", Of: who, Took: ms(ahead)})
	}
	told := func(when int, k Kind) Record { return at(when, Record{Kind: k, Who: "w1", Job: "a"}) }
	with := func(more ...Record) []Record {
		return append(within(sound()), append([]Record{set(190, "w1", 0), set(190, "w2", 0)}, more...)...)
	}
	fault := func(from, to int, name string) []Record {
		r := Record{Kind: FaultBegun, Who: "driver", Fault: name, Of: "w1", Disturbs: true}
		over := r
		over.Kind, over.Count = FaultEnded, 1
		return []Record{at(from, r), at(to, over)}
	}
	refused := func(when int) Record {
		return at(when, Record{Kind: Stopped, Who: "w3", Job: "a", Instance: "i3", Err: "job a: MaxTimeDiff: this host's clock says"})
	}
	other := at(4000, Record{Kind: Configured, Who: "driver", Job: "a", Config: &Config{Cron: everySecond, Total: 2}})
	for name, c := range map[string]struct {
		h    []Record
		want Invariant
		says string
	}{
		"sound":                         {with(), "", ""},
		"set too far":                   {with(set(1400, "w1", 4000)), Clocks, "entered by a clock that is 4s off that of the leader i2, and 2s are allowed"},
		"set back too far":              {with(set(1400, "w1", -4000)), Clocks, "4s off"},
		"set too far a while":           {with(set(1400, "w1", 4000), set(1900, "w1", 0)), "", ""},
		"a moment ago":                  {with(set(4600, "w1", 4000)), "", ""},
		"for the first time":            {append(within(sound()), set(1400, "w1", 4000)), Clocks, "4s off"},
		"a moment ago, for the first":   {append(within(sound()), set(4600, "w1", 4000)), "", ""},
		"no further than is allowed":    {with(set(1400, "w1", 2000)), "", ""},
		"further than a comparison can": {with(set(1400, "w1", 3001)), Clocks, ""},
		"no bound":                      {append(sound(), set(190, "w1", 0), set(190, "w2", 0), set(1400, "w1", 4000)), "", ""},
		"no bound any more":             {with(set(3600, "w1", 4000), other), "", ""},
		"the leader's was set":          {with(set(1400, "w2", -4000)), Clocks, "4s off"},
		"the leader's was just set":     {with(set(3600, "w2", -4000)), "", ""},
		"both were":                     {with(set(1400, "w1", 4000), set(1400, "w2", 4000)), "", ""},
		"a fault is about":              {with(append(fault(1300, 5000, "cut"), set(1400, "w1", 4000))...), "", ""},
		"the fault is the clock's":      {with(append(fault(1300, 6000, SetClock), set(1400, "w1", 4000))...), Clocks, ""},
		"it is its own leader": {
			change(with(set(1400, "w1", 4000)), func(r Record) bool { return r.Kind == Led }, func(r *Record) { r.Of = "i1" }), "", "",
		},
		"it was found to be off":     {with(told(1500, ClockOff)), Clocks, "entered 510ms after its clock was found to be off"},
		"and agrees again":           {with(told(1500, ClockOff), told(1990, ClockAgrees)), "", ""},
		"and agrees a moment later":  {with(told(1500, ClockOff), told(2100, ClockAgrees)), "", ""},
		"and agrees later":           {with(told(1500, ClockOff), told(2120, ClockAgrees)), Clocks, "entered 510ms after"},
		"it was found just now":      {with(told(4600, ClockOff)), "", ""},
		"it was, in a life before":   {with(told(205, ClockOff)), "", ""},
		"it does not start":          {with(refused(2000)), Failed, "i3 has left for good"},
		"it does not start yet":      {with(refused(8500)), "", ""},
		"it starts when that agrees": {with(refused(2000), at(3000, Record{Kind: Registered, Who: "w3", Job: "a", Instance: "i3"}), at(9400, Record{Kind: Gone, Job: "a", Instance: "i3", Node: Life})), "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			rules := strict
			rules.Off, rules.LeadOff = ms(500), ms(1500)
			got := Check(c.h, rules)
			if c.want == "" {
				require.Empty(t, got.Broken, "%v", got.Violations)
				return
			}
			require.Positive(t, got.Broken[c.want], "%v", got.Violations)
			require.Len(t, got.Broken, 1)
			require.Contains(t, got.Violations[0].Text, c.says)
		})
	}
}

func TestWarningsOfClocks(t *testing.T) {
	require.Equal(t, ClockOff, Warning("the clock is off: this host's clock says 05:00:00"))
	require.Equal(t, ClockAgrees, Warning("the clock agrees with the leader's again, within 5s: what came due is decided"))
	require.Equal(t, Warned, Warning("the clock was set by 4s"))
}
