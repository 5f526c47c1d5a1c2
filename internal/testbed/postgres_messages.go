package testbed

import (
	"bytes"
	"encoding/binary"
	"sync"
	"time"
)

// A PostgresClient is the way of one client to a server. Its faults are those of a Proxy; it knows
// the messages of the protocol, unless they are encrypted.
type PostgresClient struct {
	ways

	counting   sync.Mutex
	statements int
}

// NextCommit decides the fate of the client's next commit that has none yet. hit reports whether a
// commit has met it.
func (c *PostgresClient) NextCommit(f Fate) (hit func() bool) { return c.decide(f) }

// RoundTrips counts what the client has asked and waited for since the last call.
func (c *PostgresClient) RoundTrips() int {
	c.counting.Lock()
	defer c.counting.Unlock()
	n := c.statements
	c.statements = 0
	return n
}

// Strand silences the client's present connections: nothing passes any more, nor their end, as where
// an address has moved. New ones are served.
func (c *PostgresClient) Strand() (heal func()) {
	stranded := []byte("stranded")
	p := c.proxies[0]
	p.mu.Lock()
	for l := range p.links {
		l.first = stranded
	}
	p.mu.Unlock()
	return p.HoldSome(func(request []byte) bool { return bytes.Equal(request, stranded) })
}

// Close ends the client's connections for good. The test's end does too.
func (c *PostgresClient) Close() { c.close() }

// Messages have a type, a length that counts itself, and a body. The first of a client, and an
// offer of encryption before it, have no type; the answer to an offer is one byte.
const (
	typeSize     = 1
	parseMessage = 'P'
	syncMessage  = 'S'
	queryMessage = 'Q'
	readyMessage = 'Z'
	notification = 'A'

	encryptionOffer = 8 // bytes
)

// commitFunction is in the statement of a commit, and in no other.
var commitFunction = []byte("elasticron.step(")

// postgresMessages inspects one connection of a client.
type postgresMessages struct {
	client *PostgresClient
	link   *link
	ways   map[Direction]*messageCutter // each used by the goroutine of its direction alone

	mu     sync.Mutex
	loses  bool          // the answer that comes next
	served chan struct{} // closed when the next answer is there
}

// A messageCutter cuts a stream into requests or answers: what comes before everybody waits.
type messageCutter struct {
	rest    []byte
	whole   []byte // messages of the present request or answer
	begun   bool   // the messages have types
	commits bool   // the present request
}

func newPostgresMessages(c *PostgresClient, l *link) *postgresMessages {
	return &postgresMessages{client: c, link: l, ways: map[Direction]*messageCutter{Requests: {}, Answers: {begun: true}}}
}

// next takes the next whole message off.
func (c *messageCutter) next() (kind byte, message []byte, ok bool) {
	head := 0
	if c.begun {
		head = typeSize
	}
	if len(c.rest) < head+lengthSize {
		return 0, nil, false
	}
	end := head + int(binary.BigEndian.Uint32(c.rest[head:]))
	if len(c.rest) < end {
		return 0, nil, false
	}
	if c.begun {
		kind = c.rest[0]
	}
	message, c.rest = c.rest[:end:end], c.rest[end:]
	c.begun = c.begun || end != encryptionOffer
	return kind, message, true
}

// inspect forwards whole requests; answers as they come. A notification that is swallowed
// counts as no hit: the server tells everybody, and who is woken by it shows in what he asks.
func (m *postgresMessages) inspect(way Direction, data []byte, forward func([]byte) bool) bool {
	c := m.ways[way]
	c.rest = append(c.rest, data...)
	var pass []byte
	m.notified(way, true)
	for {
		kind, message, ok := c.next()
		if !ok {
			break
		}
		c.whole = append(c.whole, message...)
		m.notified(way, kind == notification)
		if way == Requests {
			c.commits = c.commits || kind == parseMessage && bytes.Contains(message, commitFunction)
			if kind == parseMessage { // waits for its Sync
				continue
			}
			if !m.asked(kind) {
				continue
			}
			if meet := m.request(c); meet != nil {
				whole := c.whole
				c.whole, c.commits = nil, false
				return (len(pass) == 0 || forward(pass)) && meet(whole)
			}
			c.commits = false
		} else if kind == readyMessage && !m.answer() {
			return false
		}
		pass = append(pass, c.whole...)
		c.whole = nil
	}
	return len(pass) == 0 || forward(pass)
}

// notified notes whether there has been nothing but notifications.
func (m *postgresMessages) notified(way Direction, only bool) {
	if way == Answers {
		m.link.unasked = only && (m.link.unasked || len(m.ways[Answers].whole) == 0)
	}
}

// asked reports whether a message ends a request.
func (m *postgresMessages) asked(kind byte) bool {
	switch kind {
	case syncMessage, queryMessage:
		m.client.counting.Lock()
		m.client.statements++
		m.client.counting.Unlock()
		return true
	case 'B', 'D', 'E':
		return false
	}
	return true
}

// request says what happens to a commit instead of being forwarded; nil when nothing does.
func (m *postgresMessages) request(c *messageCutter) func(whole []byte) bool {
	if !c.commits {
		return nil
	}
	switch m.client.nextFate() {
	case AnswerLost:
		m.await(true, nil)
	case RequestLost:
		return func([]byte) bool {
			m.link.cut()
			return false
		}
	case AppliedLate:
		return func(whole []byte) bool {
			m.applyLate(whole)
			return false
		}
	}
	return nil
}

func (m *postgresMessages) await(loses bool, served chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.loses, m.served = loses, served
}

// answer is the end of one; it returns false when that is the connection's too.
func (m *postgresMessages) answer() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.served != nil {
		close(m.served)
		m.served = nil
	}
	if m.loses {
		m.link.cut()
		return false
	}
	return true
}

// applyLate cuts the client off and sends the request LateBy later.
func (m *postgresMessages) applyLate(whole []byte) {
	served := make(chan struct{})
	m.await(false, served)
	m.client.proxies[0].detach(m.link)
	defer m.link.cut()
	reset(m.link.client)
	if !m.link.wait(LateBy) {
		return
	}
	m.client.proxies[0].waitHeld(m.link)
	if _, err := m.link.server.Write(whole); err != nil {
		return
	}
	timer := time.NewTimer(applyTime)
	defer timer.Stop()
	select {
	case <-served:
	case <-m.link.done:
	case <-timer.C:
	}
}
