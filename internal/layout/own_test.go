package layout

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/elasticron/elasticron/internal/field"
	"github.com/elasticron/elasticron/registry"
)

// ownInstants are what the codecs of our own nodes must write and read: also the zero time,
// ends of the years that there are, fractions, zones, monotonic readings.
var ownInstants = rapid.OneOf(
	rapid.Just(time.Time{}),
	rapid.SampledFrom([]time.Time{
		time.Unix(0, 1), time.Date(2026, 11, 21, 5, 0, 0, 7, time.FixedZone("east", 19_800)), time.Now(),
		time.Date(9999, 12, 31, 23, 59, 59, 999_999_999, time.UTC), time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC),
	}),
	rapid.Map(rapid.Int64Range(-62_135_596_800, 253_402_300_799),
		func(s int64) time.Time { return time.Unix(s, s&0xfffff) }),
)

var (
	rules = rapid.Custom(func(t *rapid.T) Rule {
		return Rule{
			Cron:    rapid.StringN(1, 20, -1).Draw(t, "cron"),
			Zone:    rapid.SampledFrom([]string{"", "UTC", "GMT+8"}).Draw(t, "zone"),
			Gap:     rapid.SampledFrom([]string{"", "skip"}).Draw(t, "gap"),
			Overlap: rapid.SampledFrom([]string{"", "both"}).Draw(t, "overlap"),
		}
	})
	words = rapid.StringMatching(`[0-9a-z.@-]{0,30}`)
)

func TestOwnValuesRoundTrip(t *testing.T) {
	same := cmp.Comparer(func(a, b time.Time) bool { return a.Equal(b) })
	check := func(t *rapid.T, want, got any, err error) {
		if err != nil || !cmp.Equal(want, got, same) {
			t.Fatalf("%v\n%s", err, cmp.Diff(want, got, same))
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		life := Life{ownInstants.Draw(t, "up"), ownInstants.Draw(t, "at"), words.Draw(t, "zone"), words.Draw(t, "host"), Listens{After: rapid.Bool().Draw(t, "after"), Again: rapid.Bool().Draw(t, "again")}}
		l, err := UnmarshalLife(MarshalLife(life))
		check(t, life, l, err)
		if stone := (Tombstone{ownInstants.Draw(t, "removed")}); !stone.Removed.IsZero() {
			s, ok := UnmarshalTombstone(MarshalTombstone(stone))
			if !ok {
				t.Fatal("a tombstone is not one")
			}
			check(t, stone, s, nil)
		}
		base := Base{
			rapid.IntRange(1, 1<<40).Draw(t, "epoch"), rapid.IntRange(0, 99).Draw(t, "from"),
			rapid.IntRange(1, 1<<20).Draw(t, "to"),
			ownInstants.Draw(t, "through"), rapid.Bool().Draw(t, "assigned"),
		}
		b, err := UnmarshalBase(MarshalBase(base))
		check(t, base, b, err)
		schedule := Schedule{Number: rapid.IntRange(1, 9).Draw(t, "n"), Rule: rules.Draw(t, "rule"),
			Since: ownInstants.Draw(t, "since"), Floor: ownInstants.Draw(t, "floor")}
		for range rapid.IntRange(0, 3).Draw(t, "changes") {
			schedule.Before = append(schedule.Before, Past{rules.Draw(t, "before"), ownInstants.Draw(t, "and since")})
		}
		s, err := UnmarshalSchedule(MarshalSchedule(schedule))
		check(t, schedule, s, err)
		offset := Offset{
			Offset: rapid.String().Draw(t, "offset"), Total: rapid.IntRange(1, 9).Draw(t, "total"), Seq: rapid.Int64Range(1, 1<<50).Draw(t, "seq"),
			By: words.Draw(t, "by"), Due: ownInstants.Draw(t, "due"), At: ownInstants.Draw(t, "set at"),
			Success: rapid.Int64Min(0).Draw(t, "success"), Failure: rapid.Int64Min(0).Draw(t, "failure"),
		}
		if rapid.Bool().Draw(t, "moved") {
			offset.Before = &Earlier{rapid.String().Draw(t, "earlier"), rapid.IntRange(1, 9).Draw(t, "its total")}
		}
		for range rapid.IntRange(0, 3).Draw(t, "counts") {
			offset.Counts = append(offset.Counts, Count{words.Draw(t, "instance"), ownInstants.Draw(t, "counted since"), ownInstants.Draw(t, "until"), 1, 2})
		}
		o, err := UnmarshalOffset(MarshalOffset(offset))
		check(t, offset, o, err)
		var claim Claim
		for p := range Phases {
			*claim.Of(p) = Cursor{
				Due: ownInstants.Draw(t, "due"), Since: ownInstants.Draw(t, "claimed before"), At: ownInstants.Draw(t, "claimed at"),
				Caller: words.Draw(t, "caller"), Attempt: rapid.IntRange(1, 2).Draw(t, "attempt"), Again: rapid.Bool().Draw(t, "again"),
				Done: rapid.Bool().Draw(t, "done"), Lost: rapid.Bool().Draw(t, "lost"), Failed: rapid.Bool().Draw(t, "failed"),
				Refused: Rounds{After: ownInstants.Draw(t, "refused after"), UpTo: ownInstants.Draw(t, "refused up to")},
			}
		}
		c, err := UnmarshalClaim(MarshalClaim(claim))
		check(t, claim, c, err)
		clock := Clock{Number: rapid.Int64Min(0).Draw(t, "asked"), Off: words.Draw(t, "off"), Leader: words.Draw(t, "answers"), At: ownInstants.Draw(t, "told")}
		k, err := UnmarshalClock(MarshalClock(clock))
		check(t, clock, k, err)
		notice := Notice{Stamp: words.Draw(t, "stamp"), Still: rapid.Bool().Draw(t, "still")}
		if notice.Ledger = rapid.String().Draw(t, "ledger"); notice.Ledger != "" {
			notice.Version = registry.Version(rapid.Int64().Draw(t, "version"))
		}
		check(t, notice, UnmarshalNotice(MarshalNotice(notice)), nil)
		term := Term{words.Draw(t, "leader"), rapid.IntRange(0, 1<<40).Draw(t, "commits")}
		check(t, term, UnmarshalTerm(MarshalTerm(term)), nil)
	})
}

// What was written by somebody else is no claim without rounds, which nobody was called for.
func TestWhatIsNoClaim(t *testing.T) {
	for _, value := range []string{"", "{", "[]", "null", " null\n", `{"total":-1}`, "7", `"x"`, "{} "} {
		_, err := UnmarshalClaim([]byte(value))
		require.ErrorContains(t, err, "not ours", value)
	}
	c, err := UnmarshalClaim([]byte("{}"))
	require.NoError(t, err)
	require.Zero(t, c)
	_, err = UnmarshalLife([]byte("null"))
	require.ErrorContains(t, err, "not ours")
}

// Equal values are equal bytes, whatever zone their instants were made in.
func TestOwnValuesAreWrittenInUTC(t *testing.T) {
	now := time.Date(2026, 11, 21, 5, 0, 0, 0, time.FixedZone("east", 19_800))
	require.JSONEq(t, `{"up":"2026-11-20T23:30:00Z","at":"2026-11-20T23:30:00Z"}`,
		string(MarshalLife(Life{Up: now, At: now})))
	require.JSONEq(t, `{"epoch":1,"from":0,"to":3,"through":"2026-11-20T23:30:00Z"}`,
		string(MarshalBase(Base{Epoch: 1, To: 3, Through: now})))
	require.JSONEq(t, `{"n":2,"leader":"a","at":"2026-11-20T23:30:00Z"}`, string(MarshalClock(Clock{Number: 2, Leader: "a", At: now})))
	require.JSONEq(t, `{"n":2,"cron":"@daily","since":"2026-11-20T23:30:00Z","before":[{"cron":"@hourly","zone":"UTC","since":"2026-11-20T23:30:00Z"}]}`,
		string(MarshalSchedule(Schedule{Number: 2, Rule: Rule{Cron: "@daily"}, Since: now,
			Before: []Past{{Rule{Cron: "@hourly", Zone: "UTC"}, now}}})))
	require.JSONEq(t, `{"n":1,"cron":"@daily","since":"2026-11-20T23:30:00Z","floor":"2026-11-20T23:30:00Z"}`,
		string(MarshalSchedule(Schedule{Number: 1, Rule: Rule{Cron: "@daily"}, Since: now, Floor: now})))
	require.Equal(t, "7-1 still", string(MarshalNotice(Notice{Stamp: "7-1", Still: true})))
	require.Equal(t, "7-1 still\n5\n{}", string(MarshalNotice(Notice{Stamp: "7-1", Still: true, Version: 5, Ledger: "{}"})))
	require.Equal(t, "a 3", string(MarshalTerm(Term{"a", 3})))
}

// A round that was refused stays so for who hears of a later one first, and so do those that were refused
// together with it, or just before.
func TestRefusalsAreKept(t *testing.T) {
	at := func(s int) time.Time { return time.Date(2026, 11, 21, 5, 0, s, 0, time.UTC) }
	c := Cursor{Due: at(2), Since: at(0), Done: true, Failed: true}
	next := func(s int, failed bool) Cursor {
		return Cursor{Due: at(s), Since: c.Due, Done: true, Failed: failed, Refused: c.Refusals()}
	}
	has := func() (seconds []int) {
		for s := range 10 {
			if c.Refusals().Has(at(s)) {
				seconds = append(seconds, s)
			}
		}
		return seconds
	}
	require.Equal(t, []int{1, 2}, has())
	c = next(4, true)
	require.Equal(t, []int{1, 2, 3, 4}, has())
	c = next(5, false)
	require.Equal(t, []int{1, 2, 3, 4}, has())
	c = next(7, true)
	require.Equal(t, []int{6, 7}, has())
}

func readOwn(value []byte) (errs map[string]error) {
	_, life := UnmarshalLife(value)
	_, base := UnmarshalBase(value)
	_, schedule := UnmarshalSchedule(value)
	_, offset := UnmarshalOffset(value)
	return map[string]error{"life": life, "base": base, "schedule": schedule, "offset": offset}
}

var foreign = []string{
	"", "x", "10.0.0.5@-@4711", "[]", "7", `"up"`, "{", `{"up":7,"epoch":"x","n":"x"}`, "{}x", "cron: 0/5 * * * * ?",
	`{"up":"yesterday","through":"yesterday","since":"yesterday"}`,
	// Whole years are, and one less or more in another zone is none that can be written again.
	`{"up":"9999-12-31T23:59:59-01:00","epoch":1,"to":1,"through":"9999-12-31T23:59:59-01:00","n":1,"cron":"x","since":"9999-12-31T23:59:59-01:00"}`,
	`{"up":"0000-01-01T00:00:00+01:00","epoch":1,"to":1,"through":"0000-01-01T00:00:00+01:00","n":1,"cron":"x","since":"0000-01-01T00:00:00+01:00"}`,
}

func TestForeignValuesAreRefused(t *testing.T) {
	for _, value := range foreign {
		for name, err := range readOwn([]byte(value)) {
			var wrong *field.Error
			require.ErrorAs(t, err, &wrong, "%s as %s", value, name)
			require.Equal(t, name, wrong.Field)
			require.LessOrEqual(t, len(err.Error()), 250)
			require.NotContains(t, err.Error(), "\n")
		}
	}
	_, err := UnmarshalSchedule([]byte(`{"n":1,"cron":"x","before":[{"cron":"y","since":"9999-12-31T23:59:59-01:00"}]}`))
	require.Error(t, err)
	_, err = UnmarshalLife([]byte(`{"up":"2026-11-21T05:00:00Z","at":"9999-12-31T23:59:59-01:00"}`))
	require.Error(t, err)
	for _, value := range []string{"{}", `{"epoch":1}`, `{"to":1}`, `{"epoch":-1,"to":1}`, `{"epoch":1,"to":0}`} {
		_, err := UnmarshalBase([]byte(value))
		require.ErrorContains(t, err, "epoch", value)
	}
	for _, value := range []string{"{}", `{"n":1}`, `{"cron":"x"}`, `{"n":-1,"cron":"x"}`} {
		_, err := UnmarshalSchedule([]byte(value))
		require.ErrorContains(t, err, "cron", value)
	}
	for _, value := range []string{"", "x", "a b", "a 1 2", "1", "a 99999999999999999999"} {
		require.Zero(t, UnmarshalTerm([]byte(value)), value)
	}
}

// Values of a later version may have more in them.
func TestUnknownFieldsAreIgnored(t *testing.T) {
	value := []byte(`{"more":1,"up":"2026-11-21T05:00:00Z","at":"2026-11-21T05:00:00Z","epoch":1,"to":2,"through":"2026-11-21T05:00:00Z","n":1,"cron":"x",
		"total":2,"seq":1,"since":"2026-11-21T05:00:00Z"}`)
	for name, err := range readOwn(value) {
		require.NoError(t, err, name)
	}
}

// What can be read can be written, and is read again as it was.
func FuzzOwn(f *testing.F) {
	for _, value := range foreign {
		f.Add([]byte(value))
	}
	now := time.Date(2026, 11, 21, 5, 0, 0, 0, time.UTC)
	f.Add(MarshalLife(Life{now, now, "UTC", "worker-3", Listens{After: true}}))
	f.Add(MarshalBase(Base{Epoch: 1, To: 3, Through: now}))
	f.Add(MarshalSchedule(Schedule{Number: 2, Rule: Rule{Cron: "@daily"}, Since: now,
		Before: []Past{{Rule{Cron: "@hourly", Zone: "UTC"}, now}}}))
	f.Add(MarshalNotice(Notice{Stamp: "7-1", Still: true}))
	f.Add(MarshalNotice(Notice{Stamp: "7-1", Still: true, Version: 5, Ledger: "{}\n"}))
	f.Add(MarshalTerm(Term{"a", 3}))
	f.Fuzz(func(t *testing.T, value []byte) {
		if l, err := UnmarshalLife(value); err == nil {
			again, err := UnmarshalLife(MarshalLife(l))
			require.NoError(t, err)
			require.Equal(t, MarshalLife(l), MarshalLife(again))
		}
		if b, err := UnmarshalBase(value); err == nil {
			again, err := UnmarshalBase(MarshalBase(b))
			require.NoError(t, err)
			require.Equal(t, MarshalBase(b), MarshalBase(again))
		}
		if s, err := UnmarshalSchedule(value); err == nil {
			again, err := UnmarshalSchedule(MarshalSchedule(s))
			require.NoError(t, err)
			require.Equal(t, MarshalSchedule(s), MarshalSchedule(again))
		}
		n := UnmarshalNotice(value)
		require.Equal(t, n, UnmarshalNotice(MarshalNotice(n)))
		term := UnmarshalTerm(value)
		require.Equal(t, term, UnmarshalTerm(MarshalTerm(term)))
	})
}
