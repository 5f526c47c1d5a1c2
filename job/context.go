package job

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/elasticron/elasticron/core"
)

// shardingContext is ElasticJob's, in the order of its fields.
type shardingContext struct {
	JobName            string `json:"jobName"`
	TaskID             string `json:"taskId"`
	ShardingTotalCount int    `json:"shardingTotalCount"`
	JobParameter       string `json:"jobParameter"`
	ShardingItem       int    `json:"shardingItem"`
	ShardingParameter  string `json:"shardingParameter,omitempty"`
}

// gsons are the characters of a text that Gson escapes and Go's encoder does not; the form of
// JSON itself has neither.
var gsons = strings.NewReplacer("=", `\u003d`, "'", `\u0027`)

// contextOf is the sharding context of a run as ElasticJob's Gson writes it, byte for byte.
func contextOf(s core.Shard) string {
	text, err := json.Marshal(shardingContext{
		JobName: s.Job, TaskID: s.TaskID, ShardingTotalCount: s.Total, JobParameter: s.JobParam,
		ShardingItem: s.Item, ShardingParameter: s.Param,
	})
	if err != nil {
		panic(err) // strings and numbers can always be marshalled
	}
	return gsons.Replace(string(text))
}

// headerOf is contextOf for a header of HTTP, which holds printable ASCII alone: the rest is
// written as JSON's \u.
func headerOf(s core.Shard) string {
	var b strings.Builder
	for _, r := range contextOf(s) {
		if r < utf8.RuneSelf && r != 0x7f {
			b.WriteRune(r)
			continue
		}
		for _, u := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&b, `\u%04x`, u)
		}
	}
	return b.String()
}

// environment is what a script is told of its run, as NAME=value.
func environment(s core.Shard, context string) []string {
	return []string{
		"ELASTICRON_SHARDING_CONTEXT=" + context,
		"ELASTICRON_JOB=" + s.Job,
		"ELASTICRON_ITEM=" + strconv.Itoa(s.Item),
		"ELASTICRON_TOTAL=" + strconv.Itoa(s.Total),
		"ELASTICRON_PARAM=" + s.Param,
		"ELASTICRON_JOB_PARAM=" + s.JobParam,
		"ELASTICRON_TASK_ID=" + s.TaskID,
		"ELASTICRON_DUE=" + s.Due.Format(time.RFC3339Nano),
		"ELASTICRON_ATTEMPT=" + strconv.Itoa(s.Attempt),
		"ELASTICRON_SOURCE=" + string(s.Source),
		"ELASTICRON_FENCE=" + strconv.FormatInt(int64(s.Fence), 10),
	}
}

// A tail keeps the last bytes that are written to it.
type tail struct {
	max int
	buf []byte
	cut bool
}

// Write implements io.Writer; it never fails.
func (t *tail) Write(p []byte) (int, error) {
	t.buf = append(t.buf, p...)
	if len(t.buf) > 2*t.max { // not with each write
		t.trim()
	}
	return len(p), nil
}

func (t *tail) trim() {
	if over := len(t.buf) - t.max; over > 0 {
		t.cut = true
		t.buf = t.buf[:copy(t.buf, t.buf[over:])]
	}
}

// bytes is what was kept.
func (t *tail) bytes() []byte {
	t.trim()
	return t.buf
}

// lastLine is the last line of an output that says something, for an error.
func lastLine(output []byte) string {
	lines := strings.Split(strings.TrimSpace(string(output)), "\n")
	line := strings.ToValidUTF8(strings.TrimSpace(lines[len(lines)-1]), "�")
	if cut := []rune(line); len(cut) > 200 {
		line = string(cut[:200]) + "…"
	}
	return line
}
