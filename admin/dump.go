package admin

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/elasticron/elasticron/internal/layout"
	"github.com/elasticron/elasticron/registry"
)

// Dump returns every node of a job, a line each, as "path | value": what ElasticJob's dump
// asks an instance for. Addresses are replaced by ip1, ip2 and so on, and values of props
// and jobExtraConfigurations are hidden, so that it can be shown to others.
//
// ElasticJob's dump begins with the children of the job's node, and has the children of each
// node in descending order; this one begins with the node itself, has them in ascending order,
// and ends with Elasticron's own nodes of the job. ElasticJob adds what its cache holds, where
// that differs.
func (a *Admin) Dump(ctx context.Context, job string) (string, error) {
	j, err := a.job(ctx, job)
	if err != nil {
		return "", failed("dump", job, err)
	}
	d := dump{store: a.store, job: j, names: map[string]string{}}
	for _, root := range []string{j.Root(), j.OwnRoot()} {
		if err := d.tree(ctx, root); err != nil {
			return "", failed("dump", job, err)
		}
	}
	return d.out.String(), nil
}

type dump struct {
	store registry.Store
	job   layout.Job
	out   strings.Builder
	names map[string]string // of addresses
}

func (d *dump) tree(ctx context.Context, path string) error {
	nodes, err := d.store.Get(ctx, path)
	if err != nil || !nodes[0].Exists() {
		return err
	}
	fmt.Fprintf(&d.out, "%s | %s\n", d.mask(path), d.mask(d.value(nodes[0])))
	names, err := children(ctx, d.store, path)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := d.tree(ctx, path+"/"+name); err != nil {
			return err
		}
	}
	return nil
}

// value is that of a node in one line, without what may be a secret.
func (d *dump) value(n registry.Node) string {
	text := string(n.Value)
	if n.Path == d.job.Config() {
		c, err := layout.UnmarshalConfig(n.Value)
		if err == nil {
			text, err = public(c)
		}
		if err != nil {
			text = "hidden: it cannot be read, and may hold a password"
		}
	}
	return strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", ", ")
}

// public is a configuration without what may be a secret.
func public(c layout.Config) (string, error) {
	for key := range c.Props {
		if !strings.HasPrefix(key, "elasticron.") {
			c.Props[key] = "hidden"
		}
	}
	extra := c.JobExtraConfigurations.IsZero()
	c.JobExtraConfigurations = layout.Opaque{}
	text, err := layout.MarshalConfig(c)
	if err != nil {
		return "", errors.Join(errors.New("a configuration that was read cannot be written"), err)
	}
	if !extra {
		return string(text) + "jobExtraConfigurations: hidden\n", nil
	}
	return string(text), nil
}

var addresses = regexp.MustCompile(`\b\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}\b`)

// mask replaces addresses, each always by the same name.
func (d *dump) mask(text string) string {
	return addresses.ReplaceAllStringFunc(text, func(ip string) string {
		name, known := d.names[ip]
		if !known {
			name = "ip" + strconv.Itoa(len(d.names)+1)
			d.names[ip] = name
		}
		return name
	})
}
