package config

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/elasticron/elasticron/registry"
)

// extra is what ElasticJob's tracing keeps in a job's configuration, with passwords.
const extra = "jobExtraConfigurations"

// ConvertRegistry is Convert for jobs that stand in a registry, below /namespace, and not in a
// file: it reads what ElasticJob 1 (one node for each field below config), 2 (JSON) and 3 (YAML)
// wrote there, and changes nothing. No names are all jobs. The block registry is for the caller
// to add.
func ConvertRegistry(ctx context.Context, store registry.Store, namespace string, names []string, options ConvertOptions) (*Conversion, error) {
	root := "/" + namespace
	if len(names) == 0 {
		all, err := store.Children(ctx, root)
		if err != nil {
			return nil, fmt.Errorf("config: convert %s: %w", root, err)
		}
		names = all
	}
	c := newConverter(root, options)
	jobs := newBlock()
	for _, name := range names {
		stored, err := readStored(ctx, store, root+"/"+name)
		if err != nil {
			return nil, err
		}
		from := member{key: &yaml.Node{Kind: yaml.ScalarNode, Value: name}, value: stored, path: join("jobs", name)}
		if stored == nil {
			c.lost(from.key, from.path, "has no configuration; left out")
			continue
		}
		if !c.plainTree(stored) {
			continue
		}
		if made, ok := c.convertJob(name, from); ok {
			jobs.put(name, from, made)
		}
	}
	tree := newBlock()
	tree.put("jobs", member{}, jobs.Node)
	out, err := c.finish(tree.Node)
	if err != nil {
		return nil, err
	}
	out.Problems = slices.DeleteFunc(out.Problems, func(p *FieldError) bool { return p.Field == "registry" })
	return out, nil
}

// readStored is the configuration of a job as it stands below its node, nil for none.
func readStored(ctx context.Context, store registry.Store, job string) (*yaml.Node, error) {
	nodes, err := store.Get(ctx, job, job+"/config")
	if err != nil {
		return nil, fmt.Errorf("config: convert %s: %w", job, err)
	}
	class, stored := strings.TrimSpace(string(nodes[0].Value)), nodes[1]
	if text := strings.TrimSpace(string(stored.Value)); text != "" {
		return readText(job+"/config", text, class)
	}
	leaves, err := store.Children(ctx, job+"/config")
	if errors.Is(err, registry.ErrNotFound) || err == nil && len(leaves) == 0 {
		return nil, nil //nolint:nilnil // no configuration is no error
	}
	if err != nil {
		return nil, fmt.Errorf("config: convert %s: %w", job, err)
	}
	return readLeaves(ctx, store, job+"/config", leaves)
}

// readLeaves makes one mapping of ElasticJob 1's nodes, one for each field.
func readLeaves(ctx context.Context, store registry.Store, dir string, leaves []string) (*yaml.Node, error) {
	paths := make([]string, len(leaves))
	for i, leaf := range leaves {
		paths[i] = dir + "/" + leaf
	}
	nodes, err := store.Get(ctx, paths...)
	if err != nil {
		return nil, fmt.Errorf("config: convert %s: %w", dir, err)
	}
	out := newBlock()
	for i, n := range nodes {
		if n.Exists() && len(n.Value) > 0 {
			out.text(leaves[i], member{}, string(n.Value))
		}
	}
	return out.Node, nil
}

// readText reads ElasticJob 2's JSON and ElasticJob 3's YAML, beside which the class or type of
// the job stands at its node.
func readText(path, text, class string) (*yaml.Node, error) {
	doc, problem := document([]byte(text))
	if problem != nil {
		problem.File = path
		return nil, &Error{Problems: []*FieldError{problem}}
	}
	out := block{doc}
	if out.has(extra) { // its tags name Java classes
		out.drop(extra)
		out.put(extra, member{}, &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Content: []*yaml.Node{textNode("tracing", doc)}})
	}
	switch {
	case doc.Kind != yaml.MappingNode || class == "" || out.has("jobClass"):
	case isType(class):
		out.text("elasticJobType", member{}, class)
	default:
		out.text("elasticJobClass", member{}, class)
	}
	return doc, nil
}

// isType reports whether what stands at a job's node is a type, such as SCRIPT, and no class.
func isType(s string) bool { return s == strings.ToUpper(s) && !strings.Contains(s, ".") }
