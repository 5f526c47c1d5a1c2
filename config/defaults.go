package config

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/elasticron/elasticron/core"
)

// shared is the block defaults: what counts for every job that does not say otherwise.
type shared struct {
	members []member // that could be read
	unread  []string // fields of core.JobConfig that could not
}

const (
	sharedBlock = "defaults"
	// mostItems is more than any parameter of an item asks for.
	mostItems = 100_000
)

// isShared reports whether a member stands in the block defaults.
func (m member) isShared() bool { return strings.HasPrefix(m.path, sharedBlock+".") }

// defaults reads the block, and tells what is wrong with it whatever the job.
func (r *reader) defaults(block member) {
	var found []member
	for _, m := range r.members(block.value, block.path, "write the keys of a job on the next lines, indented, such as timeZone: Europe/Berlin") {
		if m.key.Value == "cron" {
			r.add(m.key, m.path, "belongs to each job; write it there")
			continue
		}
		found = append(found, m)
	}
	c := core.JobConfig{Name: sharedBlock}
	where := map[string]member{"Name": block}
	r.shared.members, r.shared.unread = r.keys(found, block.value.Style&yaml.FlowStyle != 0, &c, where)
	delete(r.works, c.Name)
	c.Cron = "@daily"
	if _, given := where["Shards"]; !given {
		c.Shards = mostItems
	}
	before := len(r.problems)
	r.validate(c, places{c.Name: where}, r.shared.unread)
	for _, p := range r.problems[before:] {
		p.Job = "" // it is every job's
	}
}

// withDefaults adds to the keys of a job those that it does not have.
func (r *reader) withDefaults(own []member) []member {
	for _, d := range r.shared.members {
		i := slices.IndexFunc(own, func(m member) bool { return m.key.Value == d.key.Value })
		switch {
		case i < 0:
			own = append(own, d)
		case d.key.Value == "props":
			own[i].more = slices.DeleteFunc(d.mapped(), func(p member) bool {
				return own[i].value.Kind == yaml.MappingNode && hasMember(own[i].value, p.key.Value)
			})
		}
	}
	return own
}

// mapped are the members of a mapping that was read, and those that count beside them.
func (m member) mapped() []member {
	var all []member
	if m.value.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(m.value.Content); i += 2 {
			key := m.value.Content[i]
			all = append(all, member{key: key, value: m.value.Content[i+1], path: join(m.path, key.Value)})
		}
	}
	return append(all, m.more...)
}
