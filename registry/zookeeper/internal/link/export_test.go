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
