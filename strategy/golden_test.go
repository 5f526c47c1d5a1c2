package strategy

import (
	"bufio"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// The golden files hold the answers of a JVM and of ElasticJob's own classes;
// testdata/README.md tells how they are made.

func golden[T any](t testing.TB, name string) []T {
	t.Helper()
	file, err := os.Open(filepath.Join("testdata", name))
	require.NoError(t, err)
	defer file.Close()
	var rows []T
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		var row T
		require.NoError(t, json.Unmarshal(lines.Bytes(), &row))
		rows = append(rows, row)
	}
	require.NoError(t, lines.Err())
	return rows
}

type goldenHash struct {
	Text string
	Hash int32
}

func TestHashCodeIsJavas(t *testing.T) {
	rows := golden[goldenHash](t, "golden.hash.jsonl")
	require.Greater(t, len(rows), 1000)
	var least, odd, surrogates int
	for _, row := range rows {
		require.Equal(t, row.Hash, hashCode(row.Text), "%+q", row.Text)
		if row.Hash == math.MinInt32 {
			least++
		}
		if row.Hash%2 == -1 {
			odd++
		}
		if strings.ContainsFunc(row.Text, func(r rune) bool { return r > 0xFFFF }) {
			surrogates++
		}
	}
	require.Positive(t, least, "the table must hold the least hash")
	require.Positive(t, odd, "the table must hold negative odd hashes")
	require.Positive(t, surrogates, "the table must hold surrogates")
}

func TestDescendingIsJavas(t *testing.T) {
	differ := 0 // from the order of bytes
	for _, row := range golden[struct{ In, Out []string }](t, "golden.order.jsonl") {
		require.Empty(t, cmp.Diff(row.Out, descending(row.In)), "%+q", row.In)
		for i := range len(row.Out) - 1 {
			if row.Out[i] < row.Out[i+1] {
				differ++
			}
		}
	}
	require.Positive(t, differ, "the table must tell UTF-16 from UTF-8")
}

type goldenAssign struct {
	Strategy  string
	Job       string
	Instances []string
	Owners    []string // for the totals 1 to 25 and 100: one letter for each item, or "!" and an exception
}

func TestAssignIsElasticJobs(t *testing.T) {
	cells, thrown := 0, 0
	for _, row := range golden[goldenAssign](t, "golden.assign.jsonl") {
		s, err := ByName(row.Strategy)
		require.NoError(t, err)
		require.Len(t, row.Owners, 26)
		for i, want := range row.Owners {
			total := i + 1
			if total == 26 {
				total = 100
			}
			in := Input{Job: row.Job, Instances: row.Instances, Total: total}
			got := s.Assign(in)
			require.NoError(t, got.Check(in))
			cells++
			if strings.HasPrefix(want, "!") {
				requireJavaFails(t, s, row, want)
				thrown++
				continue
			}
			require.Equal(t, want, letters(got, row.Instances, total), "%s of %+q", row.Strategy, row.Job)
		}
	}
	require.Equal(t, 3*15*7*26, cells)
	require.Equal(t, 4*26, thrown)
}

// requireJavaFails allows for the one case that Java has no answer to.
func requireJavaFails(t *testing.T, s Strategy, row goldenAssign, thrown string) {
	t.Helper()
	require.Equal(t, "!java.lang.IndexOutOfBoundsException", thrown)
	require.Equal(t, RoundRobin{}, s)
	require.Equal(t, int32(math.MinInt32), hashCode(row.Job))
	require.NotContains(t, []int{1, 2, 4}, len(row.Instances))
}

// letters writes owners as the golden table does: 'a' is the first instance.
func letters(a Assignment, instances []string, total int) string {
	text := make([]byte, total)
	for item, id := range a.Owners(total) {
		for k, other := range instances {
			if id == other {
				text[item] = byte('a' + k)
			}
		}
	}
	return string(text)
}

// hashByTheBook spells String.hashCode out over code units and wide integers.
func hashByTheBook(s string) int32 {
	h := int64(0)
	for _, unit := range utf16.Encode([]rune(s)) {
		h = (31*h + int64(unit)) % (1 << 32)
	}
	return int32(uint32(h))
}

func FuzzHashCode(f *testing.F) {
	for _, row := range golden[goldenHash](f, "golden.hash.jsonl") {
		f.Add(row.Text)
	}
	f.Add("\uffff\U00010000\U0010ffff")
	f.Add("\xff\xed\xa0\x80 not UTF-8")
	f.Fuzz(func(t *testing.T, s string) {
		require.Equal(t, hashByTheBook(s), hashCode(s))
	})
}

func FuzzCompareUTF16(f *testing.F) {
	for _, row := range golden[struct{ Out []string }](f, "golden.order.jsonl") {
		if len(row.Out) > 1 {
			f.Add(row.Out[0], row.Out[1])
		}
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		requireUTF16Order(t, a, b)
	})
}

func TestCompareUTF16(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := rapid.RuneFrom([]rune{'a', 0xD7FF, 0xE000, 0xFFFF, 0x10000, 0x1F600, 0x10FFFF})
		text := rapid.StringOfN(r, 0, 4, -1)
		requireUTF16Order(t, text.Draw(t, "a"), text.Draw(t, "b"))
	})
}

func requireUTF16Order(t require.TestingT, a, b string) {
	unitsA, unitsB := utf16.Encode([]rune(a)), utf16.Encode([]rune(b))
	want := 0
	for i := 0; want == 0 && i < min(len(unitsA), len(unitsB)); i++ {
		want = int(unitsA[i]) - int(unitsB[i])
	}
	if want == 0 {
		want = len(unitsA) - len(unitsB)
	}
	require.Equal(t, sign(want), sign(compareUTF16(a, b)), "%+q %+q", a, b)
	require.Equal(t, sign(-want), sign(compareUTF16(b, a)), "%+q %+q", b, a)
}

func sign(n int) int {
	return max(-1, min(1, n))
}
