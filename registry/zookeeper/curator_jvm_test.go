package zookeeper_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/internal/testbed"
)

const (
	curatorVersion    = "5.9.0" // the newest
	elasticJobCurator = "5.1.0" // ElasticJob's
	answerTime        = 20 * time.Second
)

// needCurator returns the class path of testdata/curator with the version of Curator.
func needCurator(t *testing.T, version string) string {
	t.Helper()
	return testbed.JavaClasses(t, "Interoperation with Curator", "curator-"+version, "testdata/curator/pom.xml",
		[]string{"-Dcurator.version=" + version}, "testdata/curator/Latches.java")
}

// A jvm is a process with one Curator client.
type jvm struct {
	t       *testing.T
	cmd     *exec.Cmd
	in      io.WriteCloser
	answers chan string
	ended   chan struct{} // its output
	log     testbed.Output

	mu     sync.Mutex
	events []string
	news   chan struct{} // closed and made again with each event
}

// startJVM returns when its session is there.
func startJVM(t *testing.T, classPath, connect string) *jvm {
	t.Helper()
	j := &jvm{t: t, answers: make(chan string, 1), ended: make(chan struct{}), news: make(chan struct{})}
	// It ends with its input, which ends with the test.
	j.cmd = exec.Command("java", "-Xmx64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-Xshare:auto",
		"-Djava.net.preferIPv4Stack=true", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", classPath, "Latches",
		connect, strconv.FormatInt(sessionTimeout.Milliseconds(), 10))
	j.cmd.Stderr = &j.log
	in, err := j.cmd.StdinPipe()
	require.NoError(t, err)
	out, err := j.cmd.StdoutPipe()
	require.NoError(t, err)
	j.in = in
	require.NoError(t, j.cmd.Start())
	go j.listen(out)
	t.Cleanup(j.stop)
	j.do("session")
	return j
}

func (j *jvm) listen(out io.Reader) {
	defer close(j.ended)
	for lines := bufio.NewScanner(out); lines.Scan(); {
		event, is := strings.CutPrefix(lines.Text(), "event ")
		if !is {
			j.answers <- lines.Text()
			continue
		}
		j.mu.Lock()
		j.events = append(j.events, event)
		close(j.news)
		j.news = make(chan struct{})
		j.mu.Unlock()
	}
}

// stop kills the process, which ends no session.
func (j *jvm) stop() {
	_ = j.in.Close()
	_ = j.cmd.Process.Kill()
	<-j.ended
	_ = j.cmd.Wait()
	if j.t.Failed() {
		j.t.Logf("a JVM has said: %s", j.log.String())
	}
}

// do has a command carried out and returns the answer.
func (j *jvm) do(words ...string) string {
	j.t.Helper()
	_, err := fmt.Fprintln(j.in, strings.Join(words, " "))
	require.NoError(j.t, err, j.log.String())
	select {
	case answer := <-j.answers:
		text, ok := strings.CutPrefix(answer, "ok ")
		require.True(j.t, ok, "%v: %s", words, answer)
		return text
	case <-j.ended:
		require.FailNow(j.t, "the JVM has ended", j.log.String())
	case <-time.After(answerTime):
		require.FailNow(j.t, "no answer", "%v: %s", words, j.log.String())
	}
	return ""
}

var errNoEvent = errors.New("no such event")

// await waits for an event, such as "a leads".
func (j *jvm) await(ctx context.Context, event string) error {
	for {
		j.mu.Lock()
		news, events := j.news, strings.Join(j.events, "\n")
		j.mu.Unlock()
		if strings.Contains("\n"+events+"\n", "\n"+event+"\n") {
			return nil
		}
		select {
		case <-news:
		case <-j.ended:
			return fmt.Errorf("%w: %s: the JVM has ended: %s", errNoEvent, event, j.log.String())
		case <-ctx.Done():
			return fmt.Errorf("%w: %s: %w: there were %q", errNoEvent, event, ctx.Err(), events)
		}
	}
}

func (j *jvm) expect(event string) {
	j.t.Helper()
	require.NoError(j.t, j.await(within(j.t, answerTime), event), j.log.String())
}

// crash makes the process end itself at once, without a farewell to the service.
func (j *jvm) crash() {
	j.t.Helper()
	_, err := fmt.Fprintln(j.in, "halt")
	require.NoError(j.t, err)
	<-j.ended
}
