package ledger

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var due = time.Date(2026, 11, 21, 5, 0, 0, 0, time.UTC)

// instants that are easy to confuse: the zero time, the epoch, ends of the range
// of UnixNano, fractions, zones.
var instants = rapid.OneOf(
	rapid.Just(time.Time{}),
	rapid.SampledFrom([]time.Time{
		time.Unix(0, 0), time.Unix(0, 1), time.Unix(-1, 0), due, due.Add(time.Nanosecond),
		due.In(time.FixedZone("east", 19_800)), time.Date(9999, 12, 31, 23, 59, 59, 999_999_999, time.UTC),
		time.Date(1, 1, 1, 0, 0, 0, 1, time.UTC), time.Date(1500, 1, 1, 0, 0, 0, 0, time.UTC),
		time.Date(2262, 4, 12, 0, 0, 0, 0, time.UTC),
		// The same UnixNano as due, by wrapping: 2^64 ns later.
		due.Add(1<<63 - 1).Add(1<<63 - 1).Add(2),
	}),
	rapid.Map(rapid.Int64Range(-62_135_596_799, 253_402_300_799), func(s int64) time.Time { return time.Unix(s, s&0xfffff) }),
)

var ledgers = rapid.Custom(func(t *rapid.T) *Ledger {
	l := New(rapid.IntRange(0, 9).Draw(t, "epoch"), rapid.IntRange(0, 300).Draw(t, "total"))
	l.Seq, l.Held, l.Until = rapid.Int64Range(0, 99).Draw(t, "seq"), rapid.Bool().Draw(t, "held"), instants.Draw(t, "until")
	if l.Total == 0 {
		return l
	}
	palette := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Item {
		it := Item{Through: instants.Draw(t, "through"), Run: instants.Draw(t, "run"), Leaving: rapid.Bool().Draw(t, "leaving")}
		if rapid.Bool().Draw(t, "has run") {
			it.Last = Last{Began: instants.Draw(t, "began"), Ended: instants.Draw(t, "ended"), Failed: rapid.Bool().Draw(t, "failed")}
		}
		for i := range rapid.IntRange(0, 2).Draw(t, "notes") {
			it.Told = it.Told.With(Note{Due: due.Add(time.Duration(i)), Instance: "a"})
		}
		it.Bound = rapid.SampledFrom([]string{"", "web-1", `<"&">`}).Draw(t, "bound")
		return it
	}), 1, 4).Draw(t, "palette")
	for _, n := range rapid.SliceOfDistinct(rapid.IntRange(0, l.Total-1), rapid.ID).Draw(t, "items") {
		l.Set(n, rapid.SampledFrom(palette).Draw(t, "item"))
	}
	return l
})

func TestWhatIsEncodedIsDecoded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := ledgers.Draw(t, "ledger")
		value := l.Encode()
		got, err := Decode(value)
		if err != nil {
			t.Fatalf("%s: %v", value, err)
		}
		if !l.Equal(got) || l.Seq != got.Seq || !maps.Equal(l.items, got.items) {
			t.Fatalf("%s\n%s", value, got.Encode())
		}
		if again := got.Encode(); string(again) != string(value) {
			t.Fatalf("%s\n%s", value, again)
		}
	})
}

// Equal ledgers have equal bytes, whatever zones and monotonic readings they were
// made with and in whatever order their items were put in.
func TestEqualLedgersAreEqualBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := ledgers.Draw(t, "ledger")
		zone := time.FixedZone("elsewhere", rapid.IntRange(-43_200, 50_400).Draw(t, "zone"))
		other := New(l.Epoch, l.Total)
		other.Seq, other.Held, other.Until = l.Seq, l.Held, l.Until
		for _, n := range rapid.Permutation(l.Numbers()).Draw(t, "order") {
			it, _ := l.Get(n)
			if !it.Through.IsZero() {
				it.Through = it.Through.In(zone)
			}
			if !it.Run.IsZero() {
				it.Run = it.Run.In(zone)
			}
			if !it.Last.Began.IsZero() {
				it.Last.Began = it.Last.Began.In(zone)
			}
			other.Set(n, it)
		}
		if a, b := string(l.Encode()), string(other.Encode()); a != b {
			t.Fatalf("%s\n%s", a, b)
		}
	})
	now := time.Now()
	a, b := New(0, 1), New(0, 1)
	a.Set(0, Item{Through: now, Run: now})
	b.Set(0, Item{Through: now.Round(0), Run: now.Round(0).UTC()})
	require.Equal(t, string(a.Encode()), string(b.Encode()))
}

func TestSteadyStateIsOneGroup(t *testing.T) {
	l := New(0, 10_000)
	for n := range l.Total {
		l.Set(n, Item{Through: due})
	}
	require.JSONEq(t, `{"epoch":0,"total":10000,"groups":[{"items":"0-9999","through":"2026-11-21T05:00:00Z"}]}`, string(l.Encode()))
}

// Last runs are grouped apart: however they differ, the records are one group.
func TestLastRunsDoNotSplitTheSteadyState(t *testing.T) {
	l := New(0, 40)
	early := Last{Began: due, Ended: due.Add(20 * time.Millisecond)}
	for n := range l.Total {
		l.Set(n, Item{Through: due, Last: early})
	}
	l.Set(7, Item{Through: due, Last: Last{Began: due, Ended: due.Add(time.Second), Failed: true}})
	l.Set(8, Item{Through: due})
	require.JSONEq(t, `{"epoch":0,"total":40,"groups":[{"items":"0-39","through":"2026-11-21T05:00:00Z"}],"last":[`+
		`{"items":"7","began":"2026-11-21T05:00:00Z","ended":"2026-11-21T05:00:01Z","failed":true},`+
		`{"items":"0-6,9-39","began":"2026-11-21T05:00:00Z","ended":"2026-11-21T05:00:00.02Z"}]}`, string(l.Encode()))
	l.Delete(7)
	l.Set(7, Item{Through: due})
	require.NotContains(t, string(l.Encode()), "failed", "they leave with their items")
}

// The oldest last runs are left out where there is no room; what counts is written.
func TestLastRunsHaveTheirRoom(t *testing.T) {
	l := New(0, 10_000)
	for n := range l.Total {
		l.Set(n, Item{Through: due, Last: Last{Began: due.Add(time.Duration(n%500) * time.Millisecond)}})
	}
	bare := New(0, 10_000)
	for n := range l.Total {
		bare.Set(n, Item{Through: due})
	}
	value := l.Encode()
	require.LessOrEqual(t, len(value), len(bare.Encode())+MaxLast+2)
	require.Greater(t, len(value), MaxLast/2)
	got, err := Decode(value)
	require.NoError(t, err)
	latest, _ := got.Get(499)
	require.Equal(t, due.Add(499*time.Millisecond), latest.Last.Began)
	oldest, _ := got.Get(0)
	require.Equal(t, Item{Through: due}, oldest)
	kept := 0
	for _, it := range l.All() {
		if it.Last != (Last{}) {
			kept++
		}
	}
	require.Equal(t, maxLasts*l.Total/500, kept, "nor are they kept")
	step := 1
	if testing.Short() {
		step = 13
	}
	for size := 0; size < 400; size += step {
		short := l.EncodeWithin(size)
		require.LessOrEqual(t, len(short), max(size, len(bare.Encode())))
		_, err := Decode(short)
		require.NoError(t, err)
	}
}

func TestGroupsAreInTheOrderOfTheirFirstItem(t *testing.T) {
	l := New(0, 8)
	for n := range 8 {
		l.Set(n, Item{Through: due, Leaving: n == 1})
	}
	l.Set(3, Item{Through: due, Run: due})
	l.Delete(5)
	require.JSONEq(t, `{"epoch":0,"total":8,"groups":[{"items":"0,2,4,6-7","through":"2026-11-21T05:00:00Z"},`+
		`{"items":"1","through":"2026-11-21T05:00:00Z","leaving":true},`+
		`{"items":"3","through":"2026-11-21T05:00:00Z","run":"2026-11-21T05:00:00Z"}]}`, string(l.Encode()))
	require.Equal(t, `{"epoch":0,"total":0}`, string(New(0, 0).Encode()))
}

// The name of an instance stands once, whatever is lent of its items.
func TestWhatIsLentNamesWhoseItIs(t *testing.T) {
	l := New(1, 8)
	l.Set(0, Item{Through: due})
	for n, name := range map[int]string{1: "web-2", 2: "web-1", 3: "web-2"} {
		l.Set(n, Item{Through: due.Add(time.Duration(n) * time.Second), Bound: name})
	}
	require.JSONEq(t, `{"epoch":1,"total":8,"names":["web-1","web-2"],"groups":[{"items":"0","through":"2026-11-21T05:00:00Z"},`+
		`{"items":"1","through":"2026-11-21T05:00:01Z","bound":2},{"items":"2","through":"2026-11-21T05:00:02Z","bound":1},`+
		`{"items":"3","through":"2026-11-21T05:00:03Z","bound":2}]}`, string(l.Encode()))
}

func TestCloneSharesNothing(t *testing.T) {
	l := New(0, 3)
	l.Set(1, Item{Through: due})
	c := l.Clone()
	c.Set(2, Item{})
	c.Delete(1)
	require.Equal(t, []int{1}, l.Numbers())
	require.Equal(t, []int{2}, c.Numbers())
	require.True(t, (Item{Run: due}).Running())
	require.False(t, (Item{Through: due, Leaving: true}).Running())
}

// bad are values that Encode does not write, and what the error must name.
var bad = map[string]string{
	``:                                       "not one of ours",
	`hello`:                                  "not one of ours",
	`[]`:                                     "not one of ours",
	`7`:                                      "not one of ours",
	`{"total":3`:                             "not one of ours",
	`{"total":3}}`:                           "not one of ours",
	`null`:                                   "total",
	`{}`:                                     "total",
	`{"total":null}`:                         "total",
	`{"total":-1}`:                           "total",
	`{"total":"3"}`:                          "total",
	`{"total":1.5}`:                          "total",
	`{"total":1e99}`:                         "total",
	`{"total":2147483648}`:                   "total",
	`{"total":3,"groups":7}`:                 "groups",
	`{"total":3,"groups":[{}]}`:              "items",
	`{"total":3,"groups":[{"items":""}]}`:    "items",
	`{"total":3,"groups":[{"items":7}]}`:     "items",
	`{"total":3,"groups":[{"items":"3"}]}`:   "items",
	`{"total":3,"groups":[{"items":"-1"}]}`:  "items",
	`{"total":3,"groups":[{"items":"1-0"}]}`: "items",
	`{"total":3,"groups":[{"items":"1,1"}]}`: "items",
	`{"total":3,"groups":[{"items":"0,"}]}`:  "items",
	`{"total":3,"groups":[{"items":"0-1-2"}]}`:                                                                         "items",
	`{"total":3,"groups":[{"items":" 1"}]}`:                                                                            "items",
	`{"total":3,"groups":[{"items":"+1"}]}`:                                                                            "items",
	`{"total":3,"groups":[{"items":"01"}]}`:                                                                            "items",
	`{"total":3,"groups":[{"items":"0-99999999999"}]}`:                                                                 "items",
	`{"total":3,"groups":[{"items":"0-99999999999999999999"}]}`:                                                        "items",
	`{"total":3,"groups":[{"items":"0"},{"items":"0-1"}]}`:                                                             "items",
	`{"total":3,"groups":[{"items":"0\n1"}]}`:                                                                          "items",
	`{"total":9223372036854775807,"groups":[{"items":"0-9223372036854775806"}]}`:                                       "total",
	`{"total":3,"groups":[{"items":"0","through":"yesterday"}]}`:                                                       "through",
	`{"total":3,"groups":[{"items":"0","through":7}]}`:                                                                 "through",
	`{"total":3,"groups":[{"items":"0","run":"2026-11-21"}]}`:                                                          "run",
	`{"total":3,"groups":[{"items":"0","run":"2026-11-21\n05:00"}]}`:                                                   "run",
	`{"total":3,"groups":[{"items":"0","run":"9999-12-31T23:59:59-01:00"}]}`:                                           "run",
	`{"total":3,"groups":[{"items":"0","through":"0000-01-01T00:00:00+01:00"}]}`:                                       "through",
	`{"total":3,"epoch":-1}`:                                                                                           "epoch",
	`{"total":3,"epoch":9223372036854775807}`:                                                                          "epoch",
	`{"total":3,"seq":-1}`:                                                                                             "seq",
	`{"total":3,"seq":9223372036854775807}`:                                                                            "seq",
	`{"total":3,"groups":[{"items":"0","asked":9223372036854775807}]}`:                                                 "asked",
	`{"total":3,"groups":[{"items":"0","request":9223372036854775807}]}`:                                               "request",
	`{"total":3,"groups":[{"items":"0","tries":9223372036854775807}]}`:                                                 "tries",
	`{"total":3,"groups":[{"items":"0","told":[{"due":"2026-11-21T05:00:00Z","count":-1}]}]}`:                          "told",
	`{"total":3,"until":"yesterday"}`:                                                                                  "until",
	`{"total":3,"groups":[{"bits":"0"}]}`:                                                                              "bits",
	`{"total":3,"groups":[{"bits":"1:AQ"}]}`:                                                                           "bits",
	`{"total":3,"groups":[{"bits":"0:CA"}]}`:                                                                           "bits",
	`{"total":3,"groups":[{"bits":"9223372036854775800:AAI"}]}`:                                                        "bits",
	`{"total":3,"groups":[{"bits":"8:"}]}`:                                                                             "bits",
	`{"total":3,"last":[{"bits":"9223372036854775800:AAI"}]}`:                                                          "bits",
	`{"total":3,"groups":[{"items":"0","bits":"0:AQ"}]}`:                                                               "bits",
	`{"total":3,"groups":[{"gaps":"A"}]}`:                                                                              "gaps",
	`{"total":3,"groups":[{"gaps":"gA"}]}`:                                                                             "gaps",
	`{"total":3,"groups":[{"gaps":"Aw"}]}`:                                                                             "gaps",
	`{"total":3,"groups":[{"gaps":"AAEA"}]}`:                                                                           "gaps",
	`{"total":3,"groups":[{"gaps":"////////////"}]}`:                                                                   "gaps",
	`{"total":3,"groups":[{"items":"0","gaps":"AA"}]}`:                                                                 "gaps",
	`{"total":3,"groups":[{"bits":"0:AQ","gaps":"AA"}]}`:                                                               "gaps",
	`{"total":3,"groups":[{"items":"0","told":7}]}`:                                                                    "told",
	`{"total":3,"groups":[{"items":"0","told":[{}]}]}`:                                                                 "told",
	`{"total":3,"groups":[{"items":"0","told":[{"due":"9999-12-31T23:59:59-01:00","instance":"a"}]}]}`:                 "told",
	`{"total":3,"groups":[{"items":"0","told":[{"due":"0000-01-01T00:00:00+01:00","instance":"a"}]}]}`:                 "told",
	`{"total":3,"groups":[{"items":"0","told":[{"due":"2026-11-21T05:00:00Z","first":"9999-12-31T23:59:59-01:00"}]}]}`: "told",
	`{"total":3,"last":7}`:                                                                                             "last",
	`{"total":3,"last":[{"items":"3"}]}`:                                                                               "items",
	`{"total":3,"last":[{"items":"0","began":"soon"}]}`:                                                                "began",
	`{"total":3,"last":[{"items":"0","ended":"soon"}]}`:                                                                "ended",
	`{"total":3,"groups":[{"items":"0","bound":1}]}`:                                                                   "bound",
	`{"total":3,"names":["a"],"groups":[{"items":"0","bound":2}]}`:                                                     "bound",
	`{"total":3,"names":["a"],"groups":[{"items":"0","bound":-1}]}`:                                                    "bound",
	`{"total":3,"names":[""],"groups":[{"items":"0","bound":1}]}`:                                                      "bound",
	`{"total":3,"names":["a"],"groups":[{"items":"0","bound":"a"}]}`:                                                   "bound",
	`{"total":3,"groups":[{"items":"0","run":"0000-01-01T00:00:00Z"}]}`:                                                "run",
	`{"total":3,"names":7}`:                                                                                            "names",
	`{"total":3,"groups":[{"items":"0","leaving":"yes"}]}`:                                                             "leaving",
	`{"total":3,"groups":[{"items":"` + strings.Repeat("1-0 ", 50_000) + `"}]}`:                                        "items",
	`{"total":3,"groups":[{"items":"0","run":"` + strings.Repeat("x", 50_000) + `"}]}`:                                 "run",
}

func TestForeignValuesAreRefused(t *testing.T) {
	for value, field := range bad {
		t.Run(value[:min(len(value), 60)], func(t *testing.T) {
			_, err := Decode([]byte(value))
			require.ErrorContains(t, err, field)
			requireShort(t, err)
		})
	}
}

func requireShort(t testing.TB, err error) {
	t.Helper()
	require.NotContains(t, err.Error(), "\n")
	require.LessOrEqual(t, len(err.Error()), 400)
	require.Regexp(t, "^ledger: ", err.Error())
}

// A later version may add fields: they are ignored.
func TestUnknownFieldsAreIgnored(t *testing.T) {
	l, err := Decode([]byte(`{"total":3,"since":1,"groups":[{"items":"0-1","note":"x"}]}`))
	require.NoError(t, err)
	require.Equal(t, []int{0, 1}, l.Numbers())
}

// The largest total that can be configured decodes; one more is foreign.
func TestTotalBoundsWhatIsAllocated(t *testing.T) {
	l, err := Decode(fmt.Appendf(nil, `{"total":%d,"groups":[{"items":"0-%d"}]}`, MaxTotal, MaxTotal-1))
	require.NoError(t, err)
	require.Equal(t, MaxTotal, l.Len())
	require.Zero(t, int(testing.AllocsPerRun(10, func() {
		if _, err := ParseRange("5-99999999999", 6); err == nil {
			t.Error("accepted")
		}
	}))/50, "a range above the total is refused before it is spelled out")
}

func FuzzDecode(f *testing.F) {
	for value := range maps.Keys(bad) {
		if len(value) < 1000 {
			f.Add([]byte(value))
		}
	}
	f.Add([]byte(`{"total":8,"groups":[{"items":"0,2,4,6-7","through":"2026-11-21T05:00:00Z","run":"2026-11-21T05:00:00.5Z","leaving":true}]}`))
	for _, bits := range []string{"9223372036854775800:AAI", "9223372036854775744:AAI", "1048576:AQ", "1048568:gA", "8:", "-8:AQ"} {
		f.Add([]byte(`{"total":1048576,"groups":[{"bits":"` + bits + `"}],"last":[{"bits":"` + bits + `"}]}`))
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		l, err := Decode(value)
		if err != nil {
			requireShort(t, err)
			return
		}
		again, err := Decode(l.Encode())
		require.NoError(t, err)
		require.True(t, l.Equal(again))
		requireUsable(t, l)
	})
}

// requireUsable does with a ledger that was read what its owner and the leader do with it.
func requireUsable(t *testing.T, l *Ledger) {
	t.Helper()
	l = l.Clone()
	l.Epoch, l.Seq = int(min(int64(l.Epoch)+1, MaxCount)), min(l.Seq+1, MaxCount)
	require.Positive(t, l.Asked()+1)
	require.False(t, l.Rounds().Completed.After(Always))
	_, err := DecodeRounds(l.Rounds().Encode())
	require.NoError(t, err)
	for _, n := range l.Numbers() {
		it, _ := l.Get(n)
		it.Redo.Tries = int(min(int64(it.Redo.Tries)+1, MaxCount))
		it.Told = it.Told.With(Note{Due: due, Count: 1})
		l.Set(n, it)
	}
	room := Room{Value: 2 << 10, Ops: 30, Bytes: 64 << 10}
	x := plant(t, l, room)
	if n := l.Len(); n > 0 {
		l.Delete(l.Numbers()[n-1])
		x.apply(l, l.Write(1, room))
	}
	if l.Len() < 1_000 {
		x.requireHolds(l)
	}
}

func FuzzParseRange(f *testing.F) {
	for _, s := range []string{"", "0", "0-3,7", "7,0-3", "0-99999999999", "-1", "1--2", "0-0", "0,,1", "9223372036854775807"} {
		f.Add(s, 10)
	}
	f.Add("0-4611686018427387903", math.MaxInt)
	f.Fuzz(func(t *testing.T, s string, total int) {
		numbers, err := ParseRange(s, total)
		if err != nil {
			require.NotContains(t, err.Error(), "\n")
			require.LessOrEqual(t, len(err.Error()), 300)
			return
		}
		for i, n := range numbers {
			require.True(t, n >= 0 && n < total && (i == 0 || n > numbers[i-1]), "%q: %v", s, numbers)
		}
		again, err := ParseRange(FormatRange(numbers), total)
		require.NoError(t, err)
		require.Equal(t, numbers, again)
	})
}

func TestRangesRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		total := rapid.IntRange(1, 200).Draw(t, "total")
		in := make([]bool, total)
		var want []int
		for n := range in {
			if rapid.Bool().Draw(t, "in") {
				want = append(want, n)
			}
		}
		if len(want) == 0 {
			return
		}
		got, err := ParseRange(FormatRange(want), total)
		if err != nil || !cmp.Equal(want, got) {
			t.Fatalf("%v %v %v", want, got, err)
		}
	})
}

func BenchmarkEncode(b *testing.B) {
	for _, size := range []int{100, 10_000} {
		l := New(0, size)
		for n := range size {
			l.Set(n, Item{Through: due})
		}
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				l.Encode()
			}
		})
	}
}

// Scattered items of many records stay within a value: a bit map is taken where it is
// shorter than ranges (finding 20: two instances with mixed states had 294 KB).
func TestScatteredItemsFitAValue(t *testing.T) {
	l := New(3, 100_000)
	for n := 0; n < l.Total; n += 2 {
		it := Item{Through: due.Add(time.Duration(n%10) * time.Second)}
		if n%4 == 0 {
			it.Run = it.Through
		}
		l.Set(n, it)
	}
	value := l.Encode()
	require.Less(t, len(value), 200_000)
	got, err := Decode(value)
	require.NoError(t, err)
	require.True(t, l.Equal(got))
	require.Equal(t, 25_000, got.Running())
	require.Equal(t, due.Add(8*time.Second), got.Latest())
}

// A queue of late fires: each item may wait for another one, in no order. Few items among many are
// written as gaps, which take a byte or two, where their numbers take six.
func TestAQueueOfLateFiresFitsAValue(t *testing.T) {
	const fires = 1500
	l := New(3, 100_000)
	for n := 0; n < l.Total; n += 2 {
		l.Set(n, Item{Through: due.Add(time.Duration(n*7919%fires) * time.Second)})
	}
	value := l.Encode()
	require.LessOrEqual(t, len(value), maxValue)
	require.Contains(t, string(value), `"gaps":"`)
	got, err := Decode(value)
	require.NoError(t, err)
	require.True(t, l.Equal(got))
}

func TestEachFormOfASetIsRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		total := rapid.IntRange(1, 5000).Draw(t, "total")
		s, want := &set{}, map[int]bool{}
		for range rapid.IntRange(1, 300).Draw(t, "runs") {
			from := rapid.IntRange(0, total-1).Draw(t, "from")
			for n := from; n < min(total, from+rapid.IntRange(1, 5).Draw(t, "length")); n++ {
				s.add(n)
				want[n] = true
			}
		}
		form, text := s.text()
		numbers, err := map[string]numbers{"items": {Items: text}, "bits": {Bits: text}, "gaps": {Gaps: text}}[form].read(total)
		require.NoError(t, err)
		require.Equal(t, slices.Sorted(maps.Keys(want)), numbers)
		if ranges, _ := s.ranges(1 << 20); len(ranges) > readable {
			gaps, _ := s.gaps(1 << 20)
			require.LessOrEqual(t, len(text), min(len(ranges), len(gaps)))
		}
	})
}

// Finding 24: what an item's record costs does not grow with the ledger.
func TestSetCostsTheSameInEveryLedger(t *testing.T) {
	cost := func(size int) float64 {
		l := New(1, size)
		for n := range size {
			l.Set(n, Item{Through: due})
		}
		run := Item{Through: due, Run: due}
		l.Set(size-1, run) // its group exists then
		return testing.AllocsPerRun(100, func() {
			l.Set(size/2, run)
			l.Set(size/2, Item{Through: due})
		})
	}
	require.InDelta(t, cost(100), cost(10_000), 0.5)
}

// A record that is far ahead was made by a clock that was wrong, and what it says runs, runs.
func TestWhatIsAheadOfItsTime(t *testing.T) {
	now := time.Date(2026, 11, 21, 5, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		it    Item
		ahead bool
	}{
		"nothing runs":                      {Item{}, false},
		"it is due":                         {Item{Run: now}, false},
		"it is to come":                     {Item{Run: now.Add(time.Second)}, true},
		"by a clock that was an hour ahead": {Item{Run: now.Add(time.Hour)}, false},
		"somebody asked for it":             {Item{Run: now.Add(time.Millisecond), Request: 3}, false},
	} {
		require.Equal(t, c.ahead, c.it.Ahead(now), name)
	}
}

// What is written by hand is what the standard library would write, and reads back.
func TestNotesAreWrittenAsJSON(t *testing.T) {
	texts := rapid.OneOf(rapid.SampledFrom([]string{"", "10.0.0.1@-@a-b-1f", `a"b\`, "<&>", "\x7f", "\x1f", "\u2028", "\xff"}), rapid.String())
	at := rapid.Map(instants, instant)
	rapid.Check(t, func(t *rapid.T) {
		notes := make([]Note, rapid.IntRange(1, 3).Draw(t, "notes"))
		for i := range notes {
			notes[i] = Note{
				Due: at.Draw(t, "due"), Instance: texts.Draw(t, "instance"), First: at.Draw(t, "first"), Count: rapid.IntRange(0, 1e6).Draw(t, "count"),
				Reason: texts.Draw(t, "reason"), Into: at.Draw(t, "into"),
			}
		}
		want, err := json.Marshal(notes)
		require.NoError(t, err)
		require.Equal(t, string(want), toldOf(notes).text)
	})
}
