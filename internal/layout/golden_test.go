package layout

import (
	"encoding/base64"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v4"
)

// The golden files are made by ElasticJob's own classes: testdata/java.

func golden[T any](t testing.TB, file string) []T {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", file))
	require.NoError(t, err)
	var vectors []T
	require.NoError(t, json.Unmarshal(data, &vectors))
	require.NotEmpty(t, vectors)
	return vectors
}

type writeVector struct{ Text, YAML string }

// cut splits off what the driver got for the text as a key of props.
func (v writeVector) cut() (document, key string, found bool) {
	at := strings.LastIndex(v.YAML, "\nkey:\n")
	if at < 0 {
		return v.YAML, "", false
	}
	return v.YAML[:at+1], v.YAML[at+len("\nkey:\n"):], true
}

// config is what the driver filled with the text.
func (v writeVector) config() Config {
	c := Config{
		JobName: "j", ShardingTotalCount: 1, MaxTimeDiffSeconds: -1,
		Description: v.Text, Props: map[string]string{"p": v.Text},
	}
	if v.Text != "" {
		c.JobListenerTypes = []string{v.Text}
		c.JobExecutorThreadPoolSizeProviderType = v.Text
		c.OldThreadPoolKey = true
		c.TimeZone = v.Text
	}
	return c
}

// documents are what we write for each text, and where it can be one, for the text as a key.
func documents(t testing.TB) (texts, written []string) {
	t.Helper()
	for _, v := range golden[writeVector](t, "write.json") {
		c := v.config()
		if _, _, hasKey := v.cut(); hasKey {
			c.Props[v.Text] = v.Text
		}
		data, err := MarshalConfig(c)
		require.NoError(t, err, "%q", v.Text)
		texts, written = append(texts, v.Text), append(written, string(data))
	}
	return texts, written
}

// An ours is what Java has read in a document of ours.
type ours struct {
	YAML        string
	Description string
	P           string
	Own         *string // the value of the text as a key
	Listener    *string
	TimeZone    *string
}

var writeDocuments = flag.String("documents", "", "write the documents for the Java driver to this file")

// The documents are what we write today, and Java has read the text everywhere.
func TestJavaReadsWhatMarshalConfigWrites(t *testing.T) {
	texts, written := documents(t)
	if *writeDocuments != "" {
		var lines []byte
		for _, text := range written {
			lines = append(base64.StdEncoding.AppendEncode(lines, []byte(text)), '\n')
		}
		require.NoError(t, os.WriteFile(*writeDocuments, lines, 0o600))
	}
	read := golden[ours](t, "ours.json")
	require.Len(t, read, len(texts))
	for i, text := range texts {
		got := read[i]
		require.Equal(t, written[i], got.YAML, "run the Java driver again: testdata/java/pom.xml")
		require.Equal(t, text, got.Description, "%s", got.YAML)
		require.Equal(t, text, got.P, "%s", got.YAML)
		for _, field := range []*string{got.Own, got.Listener, got.TimeZone} {
			if field != nil {
				require.Equal(t, text, *field, "%s", got.YAML)
			}
		}
		require.Equal(t, text != "", got.Listener != nil && got.TimeZone != nil)
	}
}

// What other readers of Go make of it does not depend on the version of YAML.
func TestGoReadsWhatMarshalConfigWrites(t *testing.T) {
	texts, written := documents(t)
	for i, text := range texts {
		var got struct {
			Description any
			Props       map[any]any
		}
		require.NoError(t, yaml.Unmarshal([]byte(written[i]), &got), "%s", written[i])
		require.Equal(t, text, got.Description, "%s", written[i])
		require.Equal(t, text, got.Props["p"], "%s", written[i])
	}
}

func TestUnmarshalConfigReadsWhatJavaWrites(t *testing.T) {
	for _, v := range golden[writeVector](t, "write.json") {
		text, _, _ := v.cut()
		got, err := UnmarshalConfig([]byte(text))
		require.NoError(t, err, "%q", v.Text)
		want := v.config()
		require.Equal(t, want, got, "%q", v.Text)
	}
}

type readVector struct {
	Scalar             string
	JobParameter       *string
	Failover           *string
	MaxTimeDiffSeconds *string
	Props              *string
}

// Where we read otherwise than Java, on purpose: tags do not matter for fields
// of a known type; a list or a mapping is no value for props, "<<" is one.
var readDeviations = map[string]bool{
	"maxTimeDiffSeconds: !!str 5": true, "maxTimeDiffSeconds: !!float 5": true,
	"jobParameter: !!int '5'": true, "jobParameter: !!float 5": true,
	"props:\n  p: [1, a]": true, "props:\n  p: {b: 1}": true, "props:\n  p: <<": true,
}

func TestUnmarshalConfigReadsAsJavaReads(t *testing.T) {
	const head = "jobName: j\nshardingTotalCount: 1\n"
	for _, v := range golden[readVector](t, "read.json") {
		read := func(line string, want *string, field func(Config) string) {
			c, err := UnmarshalConfig([]byte(head + line + v.Scalar + "\n"))
			if readDeviations[line+v.Scalar] {
				require.Equal(t, want == nil, err == nil, "%s%s no longer deviates", line, v.Scalar)
				return
			}
			if want == nil {
				require.Error(t, err, "%s%s", line, v.Scalar)
				return
			}
			require.NoError(t, err, "%s%s", line, v.Scalar)
			require.Equal(t, *want, field(c), "%s%s", line, v.Scalar)
		}
		read("jobParameter: ", v.JobParameter, func(c Config) string { return c.JobParameter })
		read("failover: ", v.Failover, func(c Config) string { return strconv.FormatBool(c.Failover) })
		read("maxTimeDiffSeconds: ", v.MaxTimeDiffSeconds, func(c Config) string { return strconv.Itoa(c.MaxTimeDiffSeconds) })
		read("props:\n  p: ", v.Props, func(c Config) string { return c.Props["p"] })
	}
}
