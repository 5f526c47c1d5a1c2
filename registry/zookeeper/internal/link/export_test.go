package link

// Unanswered is the number of requests that the client has written and that are not answered.
func (l *Link) Unanswered() int {
	l.mu.Lock()
	c := l.current
	l.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pending.len()
}

// Waiting is the number of calls that are not sent since others are under way.
func (l *Link) Waiting() int {
	c := l.connection()
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.waiting)
}

// MaxUnderWay is how many writes are sent one by one.
const MaxUnderWay = maxUnderWay
