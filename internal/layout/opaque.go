package layout

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// Opaque is part of a configuration that is kept and never shown: not by fmt,
// not by slog. The zero value is nothing.
type Opaque struct {
	// text is YAML, from behind the key's colon to the end of the last line.
	text string
}

const hidden = "[hidden]"

// IsZero reports whether there is nothing.
func (o Opaque) IsZero() bool { return o.text == "" }

// Equal reports whether both are written the same.
func (o Opaque) Equal(other Opaque) bool { return o == other }

// String hides the content.
func (o Opaque) String() string {
	if o.IsZero() {
		return ""
	}
	return hidden
}

// Format hides the content from every verb of fmt.
func (o Opaque) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, o.String()) }

// LogValue hides the content.
func (o Opaque) LogValue() slog.Value { return slog.StringValue(o.String()) }

// readExtra keeps the value at root.Content[index+1]: its very text where the
// document is in block style, else the same YAML written anew.
func (r *configReader) readExtra(index int) (Opaque, error) {
	key, value := r.root.Content[index], r.root.Content[index+1]
	if isNull(value) || (value.Kind != yaml.ScalarNode && value.Kind != yaml.AliasNode && len(value.Content) == 0) {
		return Opaque{}, nil
	}
	if value.Kind != yaml.SequenceNode {
		return Opaque{}, wrong(keyExtra, key, "is not a list; remove it or write \"- !!class\" entries below it")
	}
	if text, ok := r.extraSource(index); ok && keeps(text, value) {
		return Opaque{text: text}, nil
	}
	if text, ok := dumpExtra(value); ok && keeps(text, value) {
		return Opaque{text: text}, nil
	}
	return Opaque{}, wrong(keyExtra, key, "cannot be kept by itself; write it in block style without references to other keys")
}

// extraSource cuts the text between the key's colon and the next key's line.
func (r *configReader) extraSource(index int) (string, bool) {
	key := r.root.Content[index]
	if r.root.Style&yaml.FlowStyle != 0 || key.Column != 1 {
		return "", false
	}
	lines := bytes.SplitAfter(r.data, []byte("\n"))
	end := len(lines)
	if index+2 < len(r.root.Content) {
		end = r.root.Content[index+2].Line - 1
	}
	if key.Line > end || end > len(lines) {
		return "", false
	}
	text := string(slices.Concat(lines[key.Line-1 : end]...))
	text, found := strings.CutPrefix(text, keyExtra+":")
	if !found {
		return "", false
	}
	if at := strings.Index(text, "\n..."); at >= 0 {
		text = text[:at]
	}
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return text, true
}

func dumpExtra(value *yaml.Node) (string, bool) {
	block := cloneNode(value) // Dump takes tags away
	block.Style &^= yaml.FlowStyle
	out, err := yaml.Dump(block)
	return "\n" + string(out), err == nil
}

func cloneNode(n *yaml.Node) *yaml.Node {
	c := *n
	c.Content = make([]*yaml.Node, len(n.Content))
	for i, child := range n.Content {
		c.Content[i] = cloneNode(child)
	}
	return &c
}

// keeps reports whether text, between other keys, reads as value does.
func keeps(text string, value *yaml.Node) bool {
	root, err := parseMapping([]byte(keyExtra + ":" + text + "jobName: x\n"))
	return err == nil && len(root.Content) == 4 && root.Content[2].Value == "jobName" &&
		sameNode(root.Content[1], value)
}

func sameNode(a, b *yaml.Node) bool {
	return a.Kind == b.Kind && a.Tag == b.Tag && a.Value == b.Value && a.Anchor == b.Anchor &&
		slices.EqualFunc(a.Content, b.Content, sameNode)
}
