package config

import (
	"slices"

	"github.com/elasticron/elasticron/core"
	"github.com/elasticron/elasticron/internal/field"
)

// check notes what core would refuse, but for fields that could not be read.
func (r *reader) check(c core.JobConfig, where places, unread []string) {
	for _, e := range field.All(c.Validate(r.opts...)) {
		if !slices.Contains(unread, e.Field) {
			r.problems = append(r.problems, where.problem(r.file, e))
		}
	}
}
