package admin

import (
	"bytes"
	"context"

	"github.com/elasticron/elasticron/core"
	"github.com/elasticron/elasticron/internal/layout"
	"github.com/elasticron/elasticron/registry"
)

// A Config is a configuration as it stood in the registry when it was read.
type Config struct {
	// JobConfig is what it says, and what SetConfig is to write. Class and Concurrency stand
	// in no registry.
	core.JobConfig

	read registry.Node
}

// Config reads a job's configuration. One that cannot be read is a *core.ConfigError.
func (a *Admin) Config(ctx context.Context, job string) (Config, error) {
	j, err := a.job(ctx, job)
	if err != nil {
		return Config{}, failed("read the configuration", job, err)
	}
	nodes, err := a.store.Get(ctx, j.Config())
	switch {
	case err != nil:
		return Config{}, failed("read the configuration", job, err)
	case !nodes[0].Exists():
		return Config{}, failed("read the configuration", job, ErrNoJob)
	}
	_, err = j.UnmarshalConfig(nodes[0].Value) // it must be this job's
	c := Config{read: nodes[0]}
	if err == nil {
		c.JobConfig, err = core.ReadConfig(nodes[0].Value)
	}
	return c, failed("read the configuration", job, err)
}

// SetConfig writes a configuration that Config has read and the caller has changed. It
// validates first, with opts as core.New gets them (a strategy of one's own needs
// core.WithStrategy, unless it is the one that stands there), and fails with ErrChanged
// when the configuration is not the one that was read any more: read it again. What only
// ElasticJob knows is kept. Members put it in force by themselves. One that enables the job
// does what EnableJob does.
func (a *Admin) SetConfig(ctx context.Context, c Config, opts ...core.Option) error {
	return failed("change the configuration", c.Name, a.setConfig(ctx, c, opts))
}

func (a *Admin) setConfig(ctx context.Context, c Config, opts []core.Option) error {
	j, err := layout.New(a.namespace, c.Name)
	if err != nil {
		return err
	}
	if c.read.Path != j.Config() {
		return &core.ConfigError{Job: c.Name, Field: "Name", Problem: "is not that of the configuration that Config has read; a job cannot change its name"}
	}
	before, err := core.ReadConfig(c.read.Value)
	if err != nil {
		return err
	}
	checked := c.JobConfig
	if checked.Strategy == before.Strategy {
		checked.Strategy = "" // the members know it
	}
	if err := checked.Validate(opts...); err != nil {
		return err
	}
	text, err := c.Rewrite(c.read.Value)
	if err != nil || bytes.Equal(text, c.read.Value) {
		return err
	}
	if err := a.replace(ctx, c.read, text); err != nil || c.Disabled || !before.Disabled {
		return err
	}
	return a.enableNew(ctx, c.Name)
}

// replace sets a node at the version that was read. When the answer is lost it is
// submitted again, and a refusal shows what became of the first attempt.
func (a *Admin) replace(ctx context.Context, read registry.Node, value []byte) error {
	return a.repeat(ctx, func() error {
		_, err := a.store.Commit(ctx, registry.Set(read.Path, value, read.Version))
		if !overtaken(err) {
			return err
		}
		nodes, err := a.store.Get(ctx, read.Path)
		if err != nil {
			return err
		}
		if n := nodes[0]; n.Created == read.Created && n.Version == read.Version+1 && bytes.Equal(n.Value, value) {
			return nil // it is ours, or says the same
		}
		return ErrChanged
	})
}
