package history

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestWhatIsWrittenIsRead(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 5, time.UTC)
	var out bytes.Buffer
	at := 7 * time.Second
	w := NewWriter(&out, "worker-1", func() (time.Duration, time.Time) { at++; return at, now })
	due := now.Add(-time.Second)
	w.Write(Record{Kind: Entered, Job: "a", Item: 3, Due: due, Fence: 9, Deadline: 10 * time.Second})
	w.Write(Record{Kind: Quiet, Job: "a", Snapshot: &Snapshot{
		Leader: "i", Running: map[int]string{4: "i"},
		Ledgers: []Ledger{{Instance: "i", Total: 5, Items: []Holding{{Item: 1, Through: due}}}},
	}})
	require.NoError(t, w.Err())
	text := out.String() + `{"kind":"returned","at":9` // killed while it wrote
	got, err := Read(bytes.NewBufferString(text))
	require.NoError(t, err)
	require.Equal(t, []Record{
		{
			Kind: Entered, At: 7*time.Second + 1, Wall: now, Who: "worker-1", Job: "a", Item: 3,
			Due: due, Fence: 9, Deadline: 10 * time.Second,
		},
		{Kind: Quiet, At: 7*time.Second + 2, Wall: now, Who: "worker-1", Job: "a", Snapshot: &Snapshot{
			Leader: "i", Running: map[int]string{4: "i"},
			Ledgers: []Ledger{{Instance: "i", Total: 5, Items: []Holding{{Item: 1, Through: due}}}},
		}},
	}, got)
}

func TestFilesAreMergedByTime(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	write("a.history", `{"kind":"note","at":3,"who":"a"}`+"\n"+`{"kind":"note","at":5,"who":"a"}`+"\n")
	write("b.history", `{"kind":"note","at":4,"who":"b"}`+"\n")
	write("c.log", "not a history\n")
	got, err := ReadDir(dir)
	require.NoError(t, err)
	require.Equal(t, []Record{{Kind: Note, At: 3, Who: "a"}, {Kind: Note, At: 4, Who: "b"}, {Kind: Note, At: 5, Who: "a"}}, got)

	write("d.history", "{\n")
	_, err = ReadDir(dir)
	require.ErrorContains(t, err, "d.history: history: line 1: ")
}
