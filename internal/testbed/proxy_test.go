package testbed_test

import (
	"bufio"
	"bytes"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/elasticron/elasticron/internal/testbed"
)

// echo answers every line with itself.
func echo(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				lines := bufio.NewScanner(c)
				for lines.Scan() {
					if _, err := c.Write(append(lines.Bytes(), '\n')); err != nil {
						return
					}
				}
			}()
		}
	}()
	t.Cleanup(func() {
		require.NoError(t, l.Close())
		<-done
	})
	return l.Addr().String()
}

func start(t *testing.T) *testbed.Proxy {
	t.Helper()
	p, err := testbed.NewProxy(echo(t))
	require.NoError(t, err)
	t.Cleanup(p.Close)
	return p
}

type line struct {
	t *testing.T
	net.Conn
	answers *bufio.Reader
}

func dial(t *testing.T, p *testbed.Proxy) line {
	t.Helper()
	c, err := net.Dial("tcp", p.Addr())
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	return line{t, c, bufio.NewReader(c)}
}

func (l line) say(text string) {
	l.t.Helper()
	_, err := l.Write([]byte(text + "\n"))
	require.NoError(l.t, err)
}

// hear waits for an answer; "" when the connection broke, "silence" when none came.
func (l line) hear(patience time.Duration) string {
	l.t.Helper()
	require.NoError(l.t, l.SetReadDeadline(time.Now().Add(patience)))
	text, err := l.answers.ReadString('\n')
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		return "silence"
	}
	if err != nil {
		return ""
	}
	return text[:len(text)-1]
}

// refused reports whether a new connection breaks, at once or a little later.
func refused(t *testing.T, p *testbed.Proxy) bool {
	t.Helper()
	c, err := net.Dial("tcp", p.Addr())
	if err != nil {
		return true
	}
	defer c.Close()
	return line{t, c, bufio.NewReader(c)}.hear(soon) == ""
}

const (
	soon  = 5 * time.Second
	quiet = 100 * time.Millisecond
)

func TestProxyPasses(t *testing.T) {
	p := start(t)
	l := dial(t, p)
	l.say("one")
	require.Equal(t, "one", l.hear(soon))
	require.Zero(t, p.Hits())
}

func TestProxyDropsOnce(t *testing.T) {
	p := start(t)
	l := dial(t, p)
	l.say("one")
	require.Equal(t, "one", l.hear(soon))
	p.Drop()
	require.Empty(t, l.hear(soon))
	again := dial(t, p)
	again.say("two")
	require.Equal(t, "two", again.hear(soon))
	require.Equal(t, 1, p.Hits())
}

func TestProxyBlackhole(t *testing.T) {
	for name, d := range map[string]testbed.Direction{"Both": testbed.Both, "Requests": testbed.Requests, "Answers": testbed.Answers} {
		t.Run(name, func(t *testing.T) {
			p := start(t)
			hurt, spared := dial(t, p), dial(t, p)
			for _, l := range []line{hurt, spared} {
				l.say("before")
				require.Equal(t, "before", l.hear(soon))
			}
			heal := p.Blackhole(d)
			hurt.say("lost")
			require.Equal(t, "silence", hurt.hear(quiet))
			require.Positive(t, p.Hits())
			heal()
			heal()
			require.Empty(t, hurt.hear(soon), "a connection that lost data is cut")
			spared.say("after")
			require.Equal(t, "after", spared.hear(soon))
		})
	}
}

func TestProxyHoldsSome(t *testing.T) {
	p := start(t)
	hurt, spared := dial(t, p), dial(t, p)
	for name, l := range map[string]line{"hurt": hurt, "spared": spared} {
		l.say(name)
		require.Equal(t, name, l.hear(soon))
	}
	heal := p.HoldSome(func(first []byte) bool { return bytes.HasPrefix(first, []byte("hurt")) })
	hurt.say("held")
	require.Equal(t, "silence", hurt.hear(quiet))
	require.Positive(t, p.Hits())
	spared.say("passes")
	require.Equal(t, "passes", spared.hear(soon))
	late := dial(t, p)
	late.say("hurt too")
	require.Equal(t, "silence", late.hear(quiet))
	heal()
	require.Equal(t, "held", hurt.hear(soon))
	require.Equal(t, "hurt too", late.hear(soon))
}

func TestProxyHoldLosesNothing(t *testing.T) {
	p := start(t)
	l := dial(t, p)
	first, second := p.Hold(), p.Hold()
	l.say("held")
	require.Equal(t, "silence", l.hear(quiet))
	late := dial(t, p)
	late.say("late")
	first()
	require.Equal(t, "silence", l.hear(quiet), "the other fault goes on")
	second()
	require.Equal(t, "held", l.hear(soon))
	require.Equal(t, "late", late.hear(soon))
	require.Positive(t, p.Hits())
}

func TestProxyRefuses(t *testing.T) {
	p := start(t)
	old := dial(t, p)
	old.say("one")
	require.Equal(t, "one", old.hear(soon))
	heal := p.Refuse()
	require.Empty(t, old.hear(soon))
	require.True(t, refused(t, p))
	heal()
	l := dial(t, p)
	l.say("two")
	require.Equal(t, "two", l.hear(soon))
}

func TestProxyDelays(t *testing.T) {
	p := start(t)
	l := dial(t, p)
	heal := p.Delay(quiet)
	sent := time.Now()
	l.say("slow")
	require.Equal(t, "slow", l.hear(soon))
	require.GreaterOrEqual(t, time.Since(sent), 2*quiet, "each way takes its time")
	heal()
}

func TestProxySwallowsUntil(t *testing.T) {
	p := start(t)
	l := dial(t, p)
	found, heal := p.SwallowUntil([]byte("needle"))
	l.say("hay nee")
	select {
	case <-found:
		require.Fail(t, "found too early")
	case <-time.After(quiet):
	}
	l.say("hay needle hay")
	<-found
	heal()
	require.Empty(t, l.hear(soon))
}

func TestProxyFollowsItsServer(t *testing.T) {
	p := start(t)
	other := echo(t)
	p.SetTarget("127.0.0.1:1")
	require.True(t, refused(t, p))
	p.SetTarget(other)
	l := dial(t, p)
	l.say("moved")
	require.Equal(t, "moved", l.hear(soon))
}
