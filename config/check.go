package config

import (
	"context"
	"errors"
	"reflect"
	"slices"

	"github.com/elasticron/elasticron/core"
	"github.com/elasticron/elasticron/registry"
)

// check notes what core would refuse. Fields that could not be read count as good.
func (r *reader) check(c core.JobConfig, where places, unread []string) {
	for _, f := range unread {
		mend(&c, f)
	}
	for {
		err := checkJob(c)
		if err == nil {
			return
		}
		refused := (*core.ConfigError)(nil)
		if !errors.As(err, &refused) {
			r.addCause(where[c.Name]["Name"].key, where[c.Name]["Name"].path, err, "%v", err)
			return
		}
		r.problems = append(r.problems, where.problem(r.file, refused))
		// One wrong field hides the others of the job.
		if slices.Contains(unread, refused.Field) || !mend(&c, refused.Field) {
			return
		}
		unread = append(unread, refused.Field)
	}
}

// mend replaces a field by what is right, so that the others can be checked. It
// reports false where it cannot, as with a name.
func mend(c *core.JobConfig, name string) bool {
	f := reflect.ValueOf(c).Elem().FieldByName(name)
	if !f.IsValid() || name == "Name" {
		return false
	}
	f.SetZero()
	switch name {
	case "Cron":
		c.Cron = "@daily"
	case "Shards":
		c.Shards, c.Params = 1, nil // which items there are is not known
	}
	return true
}

// checkJob is the check that core makes when a job is added.
func checkJob(c core.JobConfig) error {
	s := core.New(nowhere{}, core.WithIP("127.0.0.1"), core.WithInstanceName("config"))
	nothing := core.JobFunc(func(context.Context, core.Shard) error { return nil })
	err := s.Add(nothing, c)
	return errors.Join(err, s.Stop(context.Background()))
}

// nowhere is the registry of a scheduler that never starts.
type nowhere struct{}

func (nowhere) Namespace() string { return "config" }
func (nowhere) Open(context.Context) (registry.Session, error) {
	return nil, registry.ErrUnavailable
}
func (nowhere) Close() error { return nil }
