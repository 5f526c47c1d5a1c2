package errorhandler

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/elasticron/elasticron/internal/field"
	"github.com/elasticron/elasticron/internal/secret"
)

// Settings are a job's props, as a Maker reads them. What is wrong is collected.
type Settings struct {
	props map[string]string
	errs  []error
}

// Err joins all that was wrong, nil for nothing.
func (s *Settings) Err() error { return errors.Join(s.errs...) }

// Wrong notes that a setting is wrong.
func (s *Settings) Wrong(key, problem string) {
	s.errs = append(s.errs, field.Errorf("Props."+key, "%s", problem))
}

// Text is a setting, or its default.
func (s *Settings) Text(key, otherwise string) string {
	if v := s.props[key]; v != "" {
		return v
	}
	return otherwise
}

// Needed is a setting that must be given.
func (s *Settings) Needed(key string) string {
	v := s.props[key]
	if v == "" {
		s.Wrong(key, "is missing; give it among the props of the job")
	}
	return v
}

// Int is a whole number that is not negative.
func (s *Settings) Int(key string, otherwise int) int {
	v := s.props[key]
	if v == "" {
		return otherwise
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 0 {
		s.Wrong(key, "is not a whole number from 0 on; write digits alone")
	}
	return n
}

// Bool is true or false.
func (s *Settings) Bool(key string, otherwise bool) bool {
	v := s.props[key]
	if v == "" {
		return otherwise
	}
	b, err := strconv.ParseBool(v)
	if err != nil {
		s.Wrong(key, "is neither true nor false; write one of them")
	}
	return b
}

// Milliseconds is a duration.
func (s *Settings) Milliseconds(key string, otherwise time.Duration) time.Duration {
	return time.Duration(s.Int(key, int(otherwise/time.Millisecond))) * time.Millisecond
}

// longestTimeout is more than a run can sensibly wait for its message.
const longestTimeout = 24 * time.Hour

// Timeout is how long a message may take, in milliseconds. It is a bound in any case: the run
// waits for its message.
func (s *Settings) Timeout(key string, otherwise time.Duration) time.Duration {
	v := s.props[key]
	if v == "" {
		return otherwise
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 1 || n > int(longestTimeout/time.Millisecond) {
		s.Wrong(key, fmt.Sprintf("is not a whole number of milliseconds from 1 to %d, and the run waits for its message; leave it out for %d",
			longestTimeout/time.Millisecond, otherwise/time.Millisecond))
	}
	return time.Duration(n) * time.Millisecond
}

// holder is the setting that holds the address of a Poster, or names what holds it.
func (s *Settings) holder(prefix string) string {
	for _, name := range []string{".url", ".webhook"} {
		for _, where := range []string{"", "Env", "File"} {
			if key := prefix + name + where; s.props[key] != "" {
				return key
			}
		}
	}
	return prefix
}

// Secret is what the file of keyFile or the variable of keyEnv holds, "" when neither is given.
// key itself is refused.
func (s *Settings) Secret(key string) string {
	value, err := secret.Read(s.props, key)
	if err != nil {
		s.errs = append(s.errs, err)
	}
	return value
}

// NeededSecret is a Secret that must be given.
func (s *Settings) NeededSecret(key string) string {
	if s.props[key] == "" && !secret.Given(s.props, key) {
		s.Wrong(key+"Env", "is missing; give the name of the environment variable that holds it, or "+key+"File")
		return ""
	}
	return s.Secret(key)
}

// Limit is how many messages a minute are sent.
func (s *Settings) Limit() int {
	before := len(s.errs)
	n := s.Int("notify.limit", 6)
	if n == 0 && len(s.errs) == before {
		s.Wrong("notify.limit", "is 0: nothing would be sent; give at least 1, or another handler")
	}
	return n
}
