package main

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func TestTheViewFitsATerminal(t *testing.T) {
	v := view{leader: "worker10", due: noon, next: noon.Add(period), progress: 100, owned: map[string][]int{}, running: map[string]map[int]time.Time{}}
	for i := range 12 {
		name := fmt.Sprintf("worker%d", i+1)
		v.workers = append(v.workers, name)
		v.running[name] = map[int]time.Time{}
		for n := i * 80; n < i*80+80; n++ {
			v.owned[name] = append(v.owned[name], n)
			v.running[name][n] = noon
		}
	}
	for _, a := range []act{actSharing, actRounds, actKill, actTaken, actFewer, actJoin, actLast} {
		v.step = string(a)
		for line := range strings.SplitSeq(v.table()+"\n"+v.bar(), "\n") {
			require.LessOrEqual(t, utf8.RuneCountInString(line), 79, line)
		}
	}
}

func TestTheViewIsRedrawnInPlaceBelowTheLines(t *testing.T) {
	var out strings.Builder
	s := &screen{out: &out, live: true}
	v := view{workers: []string{"worker1"}, owned: map[string][]int{"worker1": {0, 1}}, step: "one"}
	s.draw(v)
	rows := strings.Count(out.String(), "\n")
	require.NotContains(t, out.String(), "\x1b[")
	out.Reset()
	s.say("hello")
	require.Regexp(t, fmt.Sprintf(`^\x1b\[%dA\x1b\[J[0-9:.]+  hello\n╭`, rows), out.String())
	require.Equal(t, rows+1, strings.Count(out.String(), "\n"))
	out.Reset()
	s.draw(v)
	require.Empty(t, out.String(), "nothing has changed")

	lines := &screen{out: &out}
	lines.draw(v)
	require.Empty(t, out.String(), "no terminal, no view")
}
