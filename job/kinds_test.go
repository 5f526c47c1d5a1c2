package job

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/core"
)

func TestKinds(t *testing.T) {
	k := BuiltIn()
	k["MINE"] = KindFunc(func(core.JobConfig) (core.Job, error) {
		return core.JobFunc(func(context.Context, core.Shard) error { return nil }), nil
	})
	require.Equal(t, "[HTTP MINE SCRIPT]", k.String())
	_, err := k.New("mine", core.JobConfig{})
	require.NoError(t, err)
	_, err = k.New("COBOL", core.JobConfig{})
	require.EqualError(t, err, `Type: "COBOL" is not a kind of job; there are: HTTP, MINE, SCRIPT`)
	require.ErrorIs(t, err, core.ErrConfig)
}

// Every prop of ElasticJob's is read.
func TestPropsOfKinds(t *testing.T) {
	got, err := BuiltIn().New("Script", core.JobConfig{Props: map[string]string{
		"script.command.line": "a b", "script.dir": "/d", "script.timeout.milliseconds": "1500", "script.grace.milliseconds": "20", "script.output.bytes": "9",
	}})
	require.NoError(t, err)
	require.Equal(t, &Script{Command: "a b", Dir: "/d", Timeout: 1500 * time.Millisecond, Grace: 20 * time.Millisecond, MaxOutput: 9}, got)
	got, err = BuiltIn().New("HTTP", core.JobConfig{Props: map[string]string{
		"http.uri": "http://h/p", "http.method": "post", "http.data": "x=y", "http.content.type": "text/plain",
		"http.connect.timeout.milliseconds": "100", "http.read.timeout.milliseconds": "200",
	}})
	require.NoError(t, err)
	want := &HTTP{URL: "http://h/p", Method: "POST", Body: "x=y", ContentType: "text/plain", ConnectTimeout: 100 * time.Millisecond, ReadTimeout: 200 * time.Millisecond}
	require.Empty(t, cmp.Diff(want, got, cmpopts.IgnoreUnexported(HTTP{})))
	// 0 is no bound, as in ElasticJob, and nothing at all is the default.
	for text, want := range map[string]time.Duration{"0": -1, "": 0, "1": time.Millisecond} {
		got, err = BuiltIn().New("HTTP", core.JobConfig{Props: map[string]string{
			"http.uri": "http://h/p", "http.method": "GET", "http.connect.timeout.milliseconds": text, "http.read.timeout.milliseconds": text,
		}})
		require.NoError(t, err)
		require.Equal(t, []time.Duration{want, want}, []time.Duration{got.(*HTTP).ConnectTimeout, got.(*HTTP).ReadTimeout}, text)
	}
	for text, want := range map[string]string{
		"-1": "is not a whole number from 0 on; write digits alone", "5s": "is not a whole number from 0 on; write digits alone",
		"9223372036854775": "is more than 100 years; write fewer milliseconds",
	} {
		_, err = BuiltIn().New("HTTP", core.JobConfig{Props: map[string]string{"http.uri": "http://h/p", "http.method": "GET", "http.read.timeout.milliseconds": text}})
		require.ErrorIs(t, err, core.ErrConfig)
		require.EqualError(t, err, "Props.http.read.timeout.milliseconds: "+want)
	}
	for _, props := range []map[string]string{
		nil, {"script.command.line": "a", "script.output.bytes": "-1"}, {"script.command.line": `a "`},
	} {
		_, err = BuiltIn().New("SCRIPT", core.JobConfig{Props: props})
		require.ErrorIs(t, err, core.ErrConfig)
		require.ErrorContains(t, err, "Props.script.")
	}
}

// A URL that holds a password comes from a file or the environment, and does not reach the registry.
func TestSecretURL(t *testing.T) {
	const url = "http://jo:hunter2@127.0.0.1/p"
	t.Setenv("JOB_SECRET_URL", url)
	file := filepath.Join(t.TempDir(), "url")
	require.NoError(t, os.WriteFile(file, []byte(url+"\n"), 0o600))
	for _, props := range []map[string]string{{"http.uriEnv": "JOB_SECRET_URL"}, {"http.uriFile": file}} {
		props["http.method"] = "GET"
		got, err := BuiltIn().New("HTTP", core.JobConfig{Props: props})
		require.NoError(t, err)
		require.Equal(t, url, got.(*HTTP).URL)
	}
	for _, props := range []map[string]string{
		{"http.uri": url}, {"http.uri": "http://h", "http.uriFile": file}, {"http.uriEnv": "JOB_SECRET_URL", "http.uriFile": file},
		{"http.uriFile": filepath.Join(t.TempDir(), "none")},
	} {
		props["http.method"] = "GET"
		_, err := BuiltIn().New("HTTP", core.JobConfig{Props: props})
		require.ErrorIs(t, err, core.ErrConfig)
		require.ErrorContains(t, err, "Props.http.uri")
		require.NotContains(t, err.Error(), "hunter2")
		require.NotContains(t, err.Error(), "\n", "one error for one mistake")
	}
}
