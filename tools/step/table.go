package main

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"text/tabwriter"
	"time"
)

// A row is one line of steps.log.
type row struct {
	Step   string
	Took   time.Duration
	Result string
}

func record(file string, r row) error {
	const readable = 0o644
	f, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY|os.O_APPEND, readable)
	if err != nil {
		return err
	}
	w := csv.NewWriter(f)
	w.Comma = '\t'
	err = w.Write([]string{r.Step, strconv.FormatFloat(r.Took.Seconds(), 'f', 1, 64), r.Result})
	w.Flush()
	return errors.Join(err, w.Error(), f.Close())
}

func recorded(file string) ([]row, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines := csv.NewReader(f)
	lines.Comma, lines.FieldsPerRecord = '\t', 3
	all, err := lines.ReadAll()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	rows := make([]row, len(all))
	for i, fields := range all {
		took, err := time.ParseDuration(fields[1] + "s")
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		rows[i] = row{Step: fields[0], Took: took, Result: fields[2]}
	}
	return rows, nil
}

func printTable(out io.Writer, file string) error {
	rows, err := recorded(file)
	if err != nil {
		return err
	}
	var all time.Duration
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\nstep\ttook\tresult")
	for _, r := range rows {
		all += r.Took
		fmt.Fprintf(w, "%s\t%s\t%s\n", r.Step, inWords(r.Took), r.Result)
	}
	fmt.Fprintf(w, "together\t%s\t\n", inWords(all))
	return w.Flush()
}

// inWords is a duration as people say it: "0.4 s", "35 s", "4 min 5 s".
func inWords(d time.Duration) string {
	const quick = 10 * time.Second
	if d < quick {
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	seconds := int(d.Round(time.Second).Seconds())
	if seconds < 60 { //nolint:mnd // seconds of a minute, here and below
		return fmt.Sprintf("%d s", seconds)
	}
	return fmt.Sprintf("%d min %d s", seconds/60, seconds%60)
}
