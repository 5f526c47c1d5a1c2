package config

import (
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v4"
)

// foreignText is a scalar of ElasticJob's file with its placeholders in our form: "" for none.
func (c *converter) foreignText(m member) (string, bool) {
	if m.value.Kind != yaml.ScalarNode {
		c.add(m.value, m.path, "%s, want text", nature(m.value))
		return "", false
	}
	if null(m.value) {
		return "", true
	}
	return c.placeholders(m), true
}

// placeholders turns Spring's ${name:default} into ${NAME:-default}, and protects other dollars.
func (c *converter) placeholders(m member) string {
	var b strings.Builder
	s := m.value.Value
	if strings.Contains(s, "#{") {
		c.lost(m.value, m.path, "holds an expression of Spring, #{…}, which is not evaluated; write its value")
	}
	for {
		before, rest, found := strings.Cut(s, "$")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		inner, after, closed := cutBraces(rest)
		if !closed {
			b.WriteString("$$")
			s = rest
			continue
		}
		b.WriteString(c.placeholder(m, inner))
		s = after
	}
}

// cutBraces splits {inner}after, in which inner may hold braces.
func cutBraces(s string) (inner, after string, ok bool) {
	if !strings.HasPrefix(s, "{") {
		return "", s, false
	}
	depth := 0
	for i, r := range s {
		switch r {
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return s[1:i], s[i+1:], true
			}
		}
	}
	return "", s, false
}

func (c *converter) placeholder(m member, inner string) string {
	name, fallback, hasDefault := strings.Cut(inner, ":")
	variable := environmentName(name)
	if own, known := c.values[strings.ToLower(strings.ReplaceAll(name, "_", "-"))]; known && name != variable {
		fallback, hasDefault = own, true
	}
	if variable != name && !c.properties[name] {
		c.properties[name] = true
		c.note(m.value, m.path, "Spring's property %s is the environment variable %s here", clip(name), variable)
	}
	if strings.Contains(fallback, "${") {
		c.lost(m.value, m.path, "the default of %s is another placeholder, which is not looked at; write plain text there", variable)
		fallback, hasDefault = "", false
	}
	if !hasDefault {
		return "${" + variable + "}"
	}
	return "${" + variable + ":-" + strings.ReplaceAll(fallback, "$", "$$") + "}"
}

// environmentName is the environment variable to which Spring binds a property.
func environmentName(property string) string {
	name := strings.Map(func(r rune) rune {
		switch {
		case r == '-':
			return -1
		case r == '_' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z':
			return r
		case r >= 'a' && r <= 'z':
			return r
		}
		return '_'
	}, property)
	if variableName.MatchString(property) {
		return property
	}
	return strings.ToUpper(name)
}

// boolean is true, false or a variable, however Java's YAML writes it.
func (c *converter) boolean(m member) (string, bool) {
	text, ok := c.foreignText(m)
	switch word := strings.ToLower(text); word {
	case "true", "yes", "on":
		return "true", ok
	case "false", "no", "off":
		return "false", ok
	}
	return text, ok && text != ""
}

// secret takes a password out: key names what is written in its place. owner is what it belongs to.
func (c *converter) secret(out block, m member, key, text, owner string) {
	if name, ok := soleVariable(text); ok {
		if strings.Contains(text, ":-") {
			c.note(m.value, m.path, "the default of %s was a password, and is left out; set the variable", name)
		}
		out.text(key+"Env", m, name)
		return
	}
	s := Secret{Line: m.value.Line, column: m.value.Column, Field: m.path, value: strings.ReplaceAll(text, "$$", "$")}
	if dir := c.options.SecretDir; dir != "" {
		s.File = filepath.Join(dir, strings.Map(fileCharacter, owner+"-"+key))
		out.text(key+"File", m, s.File)
	} else {
		s.Variable = variableFor(owner, key)
		out.text(key+"Env", m, s.Variable)
	}
	if strings.Contains(text, "${") {
		c.note(m.value, m.path, "the variables in it are not filled in there; write their values")
	}
	c.secrets = append(c.secrets, s)
}

// variableFor names the environment variable of what belongs to owner.
func variableFor(owner, key string) string {
	name := strings.ToUpper(strings.Map(variableCharacter, owner+"_"+key))
	if name[0] >= '0' && name[0] <= '9' {
		name = "_" + name
	}
	return name
}

// soleVariable is the name of a text that is one variable and nothing else.
func soleVariable(text string) (string, bool) {
	inner, after, ok := cutBraces(strings.TrimPrefix(text, "$"))
	if !ok || after != "" || !strings.HasPrefix(text, "${") {
		return "", false
	}
	name, _, _ := strings.Cut(inner, ":-")
	return name, variableName.MatchString(name)
}

func variableCharacter(r rune) rune {
	if r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
		return r
	}
	return '_'
}

func fileCharacter(r rune) rune {
	if r == '.' || r == '-' {
		return r
	}
	return variableCharacter(r)
}
