package etcd

import "github.com/elasticron/elasticron/registry"

// MaxUnderWay is how many commits are sent one by one.
const MaxUnderWay = maxUnderWay

// Waiting is the number of commits that wait for a request to share, and UnderWay
// that of the requests which they wait for.
func Waiting(s registry.Session) (waiting, underWay int) {
	c := &s.(*session).crowd
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.waiting), c.underWay
}
