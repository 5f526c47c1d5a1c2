package history

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// A Clock tells the common time and the wall time of who writes.
type Clock func() (at time.Duration, wall time.Time)

// A Writer writes the records of one process or scheduler.
type Writer struct {
	who   string
	clock Clock

	mu  sync.Mutex
	out io.Writer
	err error
}

// NewWriter returns a writer of who's records. The caller closes out.
func NewWriter(out io.Writer, who string, clock Clock) *Writer {
	return &Writer{who: who, clock: clock, out: out}
}

// Write writes one record, with the writer's name and clock where the record has none.
func (w *Writer) Write(r Record) {
	at, wall := w.clock()
	if r.At == 0 {
		r.At = at
	}
	if r.Wall.IsZero() {
		r.Wall = wall
	}
	if r.Who == "" {
		r.Who = w.who
	}
	line, err := json.Marshal(r)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err == nil {
		_, err = w.out.Write(append(line, '\n'))
	}
	w.err = errors.Join(w.err, err)
}

// Err is what kept records from being written.
func (w *Writer) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// Read reads what one writer wrote.
func Read(in io.Reader) ([]Record, error) {
	var records []Record
	lines := bufio.NewReaderSize(in, 1<<16)
	for n := 1; ; n++ {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return records, nil // what stands before it was cut off with its writer
		}
		if err != nil {
			return records, fmt.Errorf("history: line %d: %w", n, err)
		}
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		var r Record
		if err := json.Unmarshal(line, &r); err != nil {
			return records, fmt.Errorf("history: line %d: %w: %.80s", n, err, line)
		}
		records = append(records, r)
	}
}

// ReadDir reads every file of a folder whose name ends in ".history" and returns all
// records by common time. Records of one instant stay in the order of their file.
func ReadDir(dir string) ([]Record, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.history"))
	if err != nil {
		return nil, err
	}
	var all []Record
	for _, name := range names {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		records, err := Read(f)
		_ = f.Close()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", filepath.Base(name), err)
		}
		all = append(all, records...)
	}
	byTime(all)
	return all, nil
}

func byTime(records []Record) {
	slices.SortStableFunc(records, func(a, b Record) int {
		switch {
		case a.At < b.At:
			return -1
		case a.At > b.At:
			return 1
		}
		return 0
	})
}
