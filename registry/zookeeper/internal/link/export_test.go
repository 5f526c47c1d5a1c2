package link

// Unanswered is the number of requests that were written and are not answered, heartbeats apart.
func (l *Link) Unanswered() int {
	l.mu.Lock()
	c := l.current
	l.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for _, s := range c.pending {
		if !s.beat {
			n++
		}
	}
	return n
}

// Waiting is the number of calls that are not sent since others are under way.
func (l *Link) Waiting() int { return l.writes.Waiting() }
