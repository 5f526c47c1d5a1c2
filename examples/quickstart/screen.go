package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
)

// A screen shows what happens, line by line. On a terminal a table stands below
// the lines and is redrawn in place: it fits 80 columns, since a line that the
// terminal breaks would spoil that.
type screen struct {
	out  io.Writer
	live bool
	body string // the view as it stands on the terminal
}

func newScreen(f *os.File) *screen {
	info, err := f.Stat()
	return &screen{out: f, live: err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb"}
}

// say adds a line of history, above the view.
func (s *screen) say(format string, args ...any) {
	s.write(time.Now().Format("15:04:05.0")+"  "+fmt.Sprintf(format, args...)+"\n", s.body)
}

// write prints history and the view below it in place of the old view, at once so
// that nothing flickers.
func (s *screen) write(history, body string) {
	var b strings.Builder
	if rows := strings.Count(s.body, "\n"); rows > 0 {
		fmt.Fprintf(&b, "\x1b[%dA\x1b[J", rows)
	}
	b.WriteString(history + body)
	s.body = body
	_, _ = io.WriteString(s.out, b.String())
}

// A view is what the table shows.
type view struct {
	workers  []string
	owned    map[string][]int
	running  map[string]map[int]time.Time // the fires that run, by item
	leader   string
	next     time.Time
	due      time.Time
	progress int // percent
	step     string
}

// draw redraws the table in place. Without a terminal it does nothing.
func (s *screen) draw(v view) {
	if body := v.table() + "\n" + v.bar() + "\n"; s.live && body != s.body {
		s.write("", body)
	}
}

// table says who owns what. A running item stands in brackets.
func (v view) table() string {
	t := table.NewWriter()
	t.SetStyle(table.StyleRounded)
	t.SetColumnConfigs([]table.ColumnConfig{{Number: 3, WidthMin: 32, WidthMax: 48}})
	t.AppendHeader(table.Row{"worker", "", "items"})
	for _, w := range v.workers {
		mark := ""
		if w == v.leader {
			mark = "leader"
		}
		var items []string
		for _, n := range v.owned[w] {
			if _, runs := v.running[w][n]; runs {
				items = append(items, fmt.Sprintf("[%d]", n))
			} else {
				items = append(items, fmt.Sprintf(" %d ", n))
			}
		}
		t.AppendRow(table.Row{w, mark, strings.Join(items, "")})
	}
	return t.Render()
}

func (v view) bar() string {
	const width = 20
	full := min(width, v.progress*width/100)
	due := "        "
	if !v.due.IsZero() {
		due = clock(v.due)
	}
	next := "-"
	if !v.next.IsZero() {
		next = clock(v.next)
	}
	return fmt.Sprintf("round %s  %s%s %3d %%   next fire %s\n%s", due, strings.Repeat("█", full), strings.Repeat("░", width-full), v.progress, next, v.step)
}

// short is the worker's name in an instance id: {ip}@-@{name}-{life}.
func short(instance string) string {
	_, name, _ := strings.Cut(instance, "@-@")
	if i := strings.LastIndexByte(name, '-'); i > 0 {
		name = name[:i]
	}
	return name
}

func sortedNames(owned map[string][]int) []string {
	var names []string
	for w := range owned {
		names = append(names, w)
	}
	slices.Sort(names)
	return names
}
