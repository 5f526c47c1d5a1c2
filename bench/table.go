package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
)

// figures are what one repetition has shown, or the medians of several.
type figures map[string]float64

// A record is one repetition, as a line of the results.
type record struct {
	At        time.Time `json:"at"`
	Registry  string    `json:"registry"`
	Fsync     bool      `json:"fsync"`
	Scenario  string    `json:"scenario"`
	Contender string    `json:"contender"`
	Of        int       `json:"of"` // repetitions whose medians these already are
	Figures   figures   `json:"figures"`
}

// medians takes each figure by itself.
func medians(all []figures) figures {
	values := map[string][]float64{}
	for _, f := range all {
		for key, v := range f {
			values[key] = append(values[key], v)
		}
	}
	middle := figures{}
	for key, v := range values {
		slices.Sort(v)
		middle[key] = (v[(len(v)-1)/2] + v[len(v)/2]) / 2
	}
	return middle
}

// spread is how far the repetitions of a figure lie apart.
func spread(all []figures, key string) (low, high float64) {
	for i, f := range all {
		if v := f[key]; i == 0 {
			low, high = v, v
		} else {
			low, high = min(low, v), max(high, v)
		}
	}
	return low, high
}

// load reads results that were written before.
func load(path string) ([]record, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var records []record
	for decoder := json.NewDecoder(bufio.NewReader(file)); ; {
		var r record
		if err := decoder.Decode(&r); errors.Is(err, io.EOF) {
			return records, nil
		} else if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		records = append(records, r)
	}
}

// base is what a contender is compared with.
func base(contender string, among map[string][]record) string {
	if _, recorded := among[ours]; !recorded || contender == goCronAlone {
		return oursBare
	}
	return ours
}

// printTables writes a table for each registry and scenario that has records.
func printTables(out io.Writer, records []record) {
	for _, registry := range []string{onEtcd, onZooKeeper} {
		for _, fsync := range []bool{true, false} {
			chosen := slices.DeleteFunc(slices.Clone(records), func(r record) bool { return r.Registry != registry || r.Fsync != fsync })
			if len(chosen) == 0 {
				continue
			}
			marked := "fsync on"
			if !fsync {
				marked = "WITHOUT fsync"
			}
			fmt.Fprintf(out, "## %s, %s\n\n", registry, marked)
			for _, s := range scenarios() {
				printTable(out, s, registry, chosen)
			}
		}
	}
}

func printTable(out io.Writer, s scenario, registry string, records []record) {
	by := map[string][]record{}
	for _, r := range records {
		if r.Scenario == s.name {
			by[r.Contender] = append(by[r.Contender], r)
		}
	}
	if len(by) == 0 {
		return
	}
	t := table.NewWriter()
	head := table.Row{""}
	for _, c := range s.columns {
		head = append(head, c.title)
	}
	t.AppendHeader(append(head, "Elasticron is better by", "median of"))
	for _, contender := range s.contenders[registry] {
		if rs := by[contender]; len(rs) > 0 {
			t.AppendRow(row(s, contender, rs, medians(allFigures(by[base(contender, by)]))))
		} else if contender == goEtcdCron {
			t.AppendRow(quotation(s))
		}
	}
	fmt.Fprintf(out, "### %s\n\n%s\n\n", s.title, t.RenderMarkdown())
}

// quotation is the row of go-etcd-cron where it was not measured.
func quotation(s scenario) table.Row {
	text := "not measured"
	if figure := quoted[s.name]; figure != "" {
		text += "; quoted: " + figure
	}
	cells := table.Row{goEtcdCron, text}
	for range len(s.columns) + 1 {
		cells = append(cells, "")
	}
	return cells
}

func allFigures(records []record) []figures {
	all := make([]figures, len(records))
	for i, r := range records {
		all[i] = r.Figures
	}
	return all
}

func row(s scenario, contender string, records []record, than figures) table.Row {
	all := allFigures(records)
	middle := medians(all)
	cells := table.Row{contender}
	for i, c := range s.columns {
		v, known := middle[c.key]
		text := "–"
		if known {
			text = format(v, c.digits)
		}
		if low, high := spread(all, c.key); i == 0 && low != high {
			text += fmt.Sprintf(" (%s to %s)", format(low, c.digits), format(high, c.digits))
		}
		cells = append(cells, text)
	}
	n := 0
	for _, r := range records {
		n += max(1, r.Of)
	}
	return append(cells, ratio(s.columns[0], than, middle), n)
}

// ratio is more than 1 where Elasticron is better.
func ratio(c column, mine, its figures) string {
	a, b := mine[c.key], its[c.key]
	if c.less {
		a, b = b, a
	}
	if a == 0 || b == 0 {
		return "–"
	}
	return strconv.FormatFloat(a/b, 'f', 2, 64)
}

func format(v float64, digits int) string {
	if digits == 0 {
		return thousands(int(v + 0.5))
	}
	return strconv.FormatFloat(v, 'f', digits, 64)
}

// thousands has a comma before each three digits.
func thousands(n int) string {
	if n < 1000 {
		return strconv.Itoa(n)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
}
