package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"
)

// A converter makes nodes of ours of nodes of ElasticJob. They keep their places in the file.
type converter struct {
	reader

	options ConvertOptions
	secrets []Secret
	notes   []Note
	// values are the scalars of the whole file by path, which placeholders may name.
	values map[string]string
	// properties are the placeholders that were told already.
	properties map[string]bool
}

func newConverter(file string, options ConvertOptions) *converter {
	return &converter{reader: reader{file: file}, options: options, values: map[string]string{}, properties: map[string]bool{}}
}

// note tells what is different. n is where.
func (c *converter) note(n *yaml.Node, path, format string, args ...any) {
	c.notes = append(c.notes, Note{Line: n.Line, Field: path, Text: oneLine(fmt.Sprintf(format, args...))})
}

// lost tells what has no counterpart.
func (c *converter) lost(n *yaml.Node, path, format string, args ...any) {
	c.note(n, path, format, args...)
	c.notes[len(c.notes)-1].Lost = true
}

// A block is a mapping of ours that is being written.
type block struct{ *yaml.Node }

func newBlock() block { return block{&yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}} }

// put adds a key, at the place of the member that it is made of.
func (b block) put(key string, at member, value *yaml.Node) {
	if at.key == nil {
		at.key = &yaml.Node{}
	}
	b.Content = append(b.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: key, Line: at.key.Line, Column: at.key.Column}, value)
}

// text adds a key whose value is text, which needs quotes where YAML would take it for more.
func (b block) text(key string, at member, value string) {
	b.put(key, at, scalarAt(at, "!!str", value))
}

// plain adds a key whose value is a number, true or false, or a variable that holds one.
func (b block) plain(key string, at member, value string) {
	tag := "!!str"
	switch {
	case wholeNumber.MatchString(value):
		tag = "!!int"
	case value == "true" || value == "false":
		tag = "!!bool"
	}
	b.put(key, at, scalarAt(at, tag, value))
}

func (b block) has(key string) bool {
	for i := 0; i+1 < len(b.Content); i += 2 {
		if b.Content[i].Value == key {
			return true
		}
	}
	return false
}

func (b block) get(key string) string {
	for i := 0; i+1 < len(b.Content); i += 2 {
		if b.Content[i].Value == key {
			return b.Content[i+1].Value
		}
	}
	return ""
}

func (b block) drop(key string) {
	for i := 0; i+1 < len(b.Content); i += 2 {
		if b.Content[i].Value == key {
			b.Content = slices.Delete(b.Content, i, i+2)
			return
		}
	}
}

func scalarAt(at member, tag, value string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: value}
	if at.value != nil {
		n.Line, n.Column = at.value.Line, at.value.Column
	} else if at.key != nil {
		n.Line, n.Column = at.key.Line, at.key.Column
	}
	return n
}

// convert makes a file of ours. Problems are collected.
func (c *converter) convert(root *yaml.Node) *yaml.Node {
	c.collect(root, "")
	out := newBlock()
	var others []string
	for _, m := range c.spread(root, "", normal) {
		switch normal(m.key.Value) {
		case "elasticjob":
			if c.plainTree(m.value) {
				c.elasticjob(m, out)
			}
		case "regcenter":
			c.regCenter(m, out)
		case "jobs":
			c.convertJobs(m, out)
		default:
			others = append(others, m.key.Value)
		}
	}
	if len(others) > 0 {
		c.notes = append(c.notes, Note{Field: strings.Join(others, ", "), Text: "are other blocks of the program's file, and were not looked at"})
	}
	return out.Node
}

// collect keeps the scalars of the file by their paths in Spring's canonical form.
func (c *converter) collect(n *yaml.Node, path string) {
	switch n.Kind {
	case yaml.ScalarNode:
		c.values[path] = n.Value
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := strings.ToLower(strings.ReplaceAll(n.Content[i].Value, "_", "-"))
			if path != "" {
				key = path + "." + key
			}
			c.collect(n.Content[i+1], key)
		}
	case yaml.DocumentNode, yaml.SequenceNode, yaml.AliasNode, yaml.StreamNode:
	}
}

// spread returns the members of a mapping, in which a.b: c is a: {b: c}, as Spring reads it. same
// says which keys are one.
func (c *converter) spread(n *yaml.Node, path string, same func(string) string) []member {
	if n.Kind != yaml.MappingNode {
		return c.members(n, path, "write its keys on the next lines, indented")
	}
	flat := &yaml.Node{Kind: n.Kind, Tag: n.Tag, Style: n.Style, Line: n.Line, Column: n.Column}
	inner := map[string]*yaml.Node{} // mappings that dots have made
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		head, rest, dotted := strings.Cut(key.Value, ".")
		if dotted = dotted && key.Kind == yaml.ScalarNode && !strings.HasPrefix(head, "["); !dotted {
			head = key.Value
		}
		in := inner[same(head)]
		switch {
		case dotted && in == nil:
			in = &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: value.Line, Column: value.Column}
			inner[same(head)] = in
			flat.Content = append(flat.Content, textNode(head, key), in)
			fallthrough
		case dotted:
			in.Content = append(in.Content, textNode(rest, key), value)
		case in != nil && value.Kind == yaml.MappingNode && !hasMember(flat, key.Value):
			in.Content = append(in.Content, value.Content...)
		case value.Kind == yaml.MappingNode && !hasMember(flat, key.Value):
			copied := *value
			copied.Content = slices.Clone(value.Content)
			inner[same(head)] = &copied
			flat.Content = append(flat.Content, key, &copied)
		default:
			flat.Content = append(flat.Content, key, value)
		}
	}
	return c.members(flat, path, "")
}

// hasMember reports whether a mapping has the key, spelled so.
func hasMember(n *yaml.Node, key string) bool {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return true
		}
	}
	return false
}

func textNode(value string, at *yaml.Node) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: value, Line: at.Line, Column: at.Column}
}

// exactly is for names, which the user chose.
func exactly(s string) string { return s }

const noTracing = "ElasticJob's tables of runs are not written: a sink of the program gets each run"

// elasticjob converts the whole block.
func (c *converter) elasticjob(m member, out block) {
	for _, m := range c.spread(m.value, m.path, normal) {
		switch normal(m.key.Value) {
		case "regcenter":
			c.regCenter(m, out)
		case "jobs":
			c.convertJobs(m, out)
		case "enabled":
			if on, _ := c.foreignText(m); on != "true" && on != "" {
				c.lost(m.key, m.path, "is a switch of Spring Boot; a program that is not to run jobs does not call Scheduler.Start")
			}
		case "tracing":
			c.lost(m.key, m.path, "%s (its password, if any, stays behind)", noTracing)
		case "dump":
			c.lost(m.key, m.path, "no port is opened; admin.Dump prints a job")
		default:
			c.lost(m.key, m.path, "is not a key of ElasticJob 3; left out")
		}
	}
}

// regCenter converts how the registry is reached.
func (c *converter) regCenter(from member, out block) {
	reg := newBlock()
	found := map[string]member{}
	texts := map[string]string{}
	for _, m := range c.spread(from.value, from.path, normal) {
		word := normal(m.key.Value)
		text, ok := c.foreignText(m)
		if !ok || text == "" {
			continue
		}
		found[word], texts[word] = m, text
		switch word {
		case "serverlists", "namespace", "digest", "username", "password", "ssl", "sessiontimeoutmilliseconds",
			"connectiontimeoutmilliseconds", "basesleeptimemilliseconds", "maxsleeptimemilliseconds", "maxretries":
		case "ensembletracker":
			c.note(m.key, m.path, "is Curator's; the servers in the url are used, and none besides")
		default:
			c.lost(m.key, m.path, "is not a key of ElasticJob's registry centre; left out")
		}
	}
	for _, needed := range []struct{ word, key, example string }{
		{"serverlists", "serverLists", "127.0.0.1:2181"}, {"namespace", "namespace", "shop"},
	} {
		if texts[needed.word] == "" {
			c.add(from.key, join(from.path, needed.key), "is missing; write for example %s: %s", needed.key, needed.example)
		}
	}
	c.address(found, texts, reg)
	c.login(found, texts, reg)
	c.retries(found, texts, reg)
	out.put("registry", from, reg.Node)
}

// address makes the url.
func (c *converter) address(found map[string]member, texts map[string]string, reg block) {
	servers, query := strings.ReplaceAll(texts["serverlists"], " ", ""), []string{}
	scheme := "zookeeper"
	if strings.HasPrefix(servers, "http://") || strings.HasPrefix(servers, "https://") {
		scheme = "etcd"
		if strings.HasPrefix(servers, "https://") {
			texts["ssl"] = "true"
		}
		servers = strings.NewReplacer("http://", "", "https://", "").Replace(servers)
	}
	if at := strings.IndexByte(servers, '/'); at >= 0 && !strings.Contains(servers[at:], "}") {
		query = append(query, "chroot="+servers[at:])
		servers = servers[:at]
	}
	for _, t := range []struct{ word, setting string }{{"sessiontimeoutmilliseconds", "session-timeout"}, {"connectiontimeoutmilliseconds", "dial-timeout"}} {
		if text := texts[t.word]; text != "" && text != "0" {
			query = append(query, t.setting+"="+milliseconds(text))
		}
	}
	if at, given := found["sessiontimeoutmilliseconds"]; scheme == "zookeeper" && (!given || texts["sessiontimeoutmilliseconds"] == "0") {
		if !given {
			at = found["serverlists"]
		}
		if at.key != nil {
			c.note(at.key, at.path, "the session timeout is 6s where none is given, and 60s in ElasticJob; write ?session-timeout=60s behind the url for that")
		}
	}
	url := scheme + "://" + servers + "/" + strings.Trim(texts["namespace"], "/")
	if len(query) > 0 {
		url += "?" + strings.Join(query, "&")
	}
	reg.text("url", found["serverlists"], url)
	if texts["ssl"] == "true" {
		tls := newBlock()
		tls.plain("enabled", found["serverlists"], "true")
		reg.put("tls", found["serverlists"], tls.Node)
	}
}

// login takes the password out.
func (c *converter) login(found map[string]member, texts map[string]string, reg block) {
	if m, given := found["digest"]; given {
		user, password, both := cutDigest(texts["digest"])
		if !both {
			c.note(m.value, m.path, "is a variable that holds a user and a password; write the user as username, and the password into what passwordEnv names")
			reg.text("username", m, "${REGISTRY_USERNAME}")
			reg.text("passwordEnv", m, "REGISTRY_PASSWORD")
			return
		}
		reg.text("username", m, user)
		c.secret(reg, m, "password", password, "registry")
		return
	}
	if m, given := found["username"]; given {
		reg.text("username", m, texts["username"])
	}
	if m, given := found["password"]; given {
		c.secret(reg, m, "password", texts["password"], "registry")
	}
}

// cutDigest splits user:password, in which either may be a variable.
func cutDigest(digest string) (user, password string, both bool) {
	depth := 0
	for i, r := range digest {
		switch {
		case r == '{':
			depth++
		case r == '}':
			depth--
		case r == ':' && depth == 0:
			return digest[:i], digest[i+1:], true
		}
	}
	return "", "", false
}

// retries converts Curator's policy.
func (c *converter) retries(found map[string]member, texts map[string]string, reg block) {
	retry := newBlock()
	var first member
	for _, t := range []struct{ word, key string }{{"basesleeptimemilliseconds", "base"}, {"maxsleeptimemilliseconds", "max"}, {"maxretries", "retries"}} {
		m, given := found[t.word]
		if !given {
			continue
		}
		if first.key == nil {
			first = m
		}
		if t.key == "retries" {
			retry.plain(t.key, m, texts[t.word])
			continue
		}
		retry.text(t.key, m, milliseconds(texts[t.word]))
	}
	if first.key != nil {
		reg.put("retry", first, retry.Node)
	}
}

// milliseconds is a duration of ours, of a number or a variable.
func milliseconds(text string) string {
	n, err := strconv.Atoi(text)
	switch d := time.Duration(n) * time.Millisecond; {
	case err != nil || d%time.Second != 0:
		return text + "ms"
	default:
		return strconv.Itoa(int(d/time.Second)) + "s"
	}
}
