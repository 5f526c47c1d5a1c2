package config

import (
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/elasticron/elasticron/registry"
	"github.com/elasticron/elasticron/registry/retry"
)

var registryKeys = []string{"url", "username", "passwordFile", "passwordEnv", "tls", "retry"}

// What people write instead, among them ElasticJob's names.
var registryWords = map[string]string{
	"address": "url", "addr": "url", "uri": "url", "servers": "url", "hosts": "url", "endpoints": "url", "serverlists": "url",
	"namespace":                  "the path of url, scheme://host:port/namespace",
	"sessiontimeout":             "the setting of url, ?session-timeout=6s",
	"sessiontimeoutmilliseconds": "the setting of url, ?session-timeout=6s",
	"user":                       "username",
	"basesleeptimemilliseconds":  "retry.base, such as 1s",
	"maxsleeptimemilliseconds":   "retry.max, such as 3s",
	"maxretries":                 "retry.retries",
	"retries":                    "retry.retries",
	"ca":                         "tls.ca", "cert": "tls.cert", "key": "tls.key", "ssl": "tls",
}

// secretKeys would hold a secret in the file.
var secretKeys = map[string]bool{
	"password": true, "passwd": true, "pwd": true, "pass": true, "secret": true, "token": true, "digest": true, "credentials": true, "auth": true,
}

// registry reads the registry block.
func (r *reader) registry(block member) Registry {
	var reg Registry
	clean, urlRead := len(r.problems), block.value.Kind == yaml.MappingNode
	found := r.members(block.value, block.path, "write url: and the address on the next line, indented")
	place := block
	for _, m := range found {
		if secretKeys[normal(m.key.Value)] {
			r.add(m.key, m.path, "a password does not belong in this file; put it in a file that passwordFile names, or in an environment variable that passwordEnv names")
			continue
		}
		switch m.key.Value {
		case "url":
			before := len(r.problems)
			place, reg.Address = m, r.setting(m)
			urlRead = len(r.problems) == before
		case "username":
			reg.Username = r.setting(m)
		case "passwordFile":
			r.place("passwordFile", m)
			reg.PasswordFile = r.filename(m)
		case "passwordEnv":
			r.place("passwordEnv", m)
			reg.PasswordEnv = r.variableName(m)
		case "tls":
			reg.TLS = r.tls(m)
		case "retry":
			reg.Retry = r.retry(m)
		default:
			r.unknown(m, registryKeys, registryWords)
		}
	}
	if reg.PasswordFile != "" && reg.PasswordEnv != "" {
		r.add(block.key, block.path, "has both passwordFile and passwordEnv; leave one")
	}
	_, _, err := parseAddress(reg.Address)
	if err == nil && len(r.problems) == clean {
		_, err = reg.URL()
	}
	if err != nil && urlRead {
		r.add(place.key, join(block.path, "url"), "%v", err)
	}
	place.path = join(block.path, "url")
	r.place("url", place)
	return reg
}

// place keeps where a key of the registry block stands.
func (r *reader) place(name string, m member) {
	if r.settings == nil {
		r.settings = map[string]FieldError{}
	}
	r.settings[name] = FieldError{File: r.file, Line: m.key.Line, Column: m.key.Column, Field: m.path}
}

// setting is a text of the registry block.
func (r *reader) setting(m member) string {
	s, _ := r.text(m)
	return s
}

// filename is a setting that names a file, relative to the folder of the YAML file.
func (r *reader) filename(m member) string {
	name := r.setting(m)
	if name == "" || filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(r.dir, name)
}

// variableName is the name of a variable, whose value is left where it is. What is
// no name is not repeated: it may be the secret.
func (r *reader) variableName(m member) string {
	s, ok := r.raw(m)
	switch {
	case !ok:
		return ""
	case strings.Contains(s, "${"):
		r.add(m.value, m.path, "names the variable itself, which is read when the registry is opened; write its NAME without ${}")
		return ""
	case s != "" && !variableName.MatchString(s):
		r.add(m.value, m.path, "is not the name of an environment variable; write its name, such as REGISTRY_PASSWORD, and put the password in that variable")
		return ""
	}
	return s
}

// tls reads the tls block. TLS is on when it says so, or gives a file and does not
// say otherwise.
func (r *reader) tls(block member) TLS {
	var t TLS
	said := false
	found := r.members(block.value, block.path, "write enabled: true on the next line, indented")
	if block.value.Kind == yaml.MappingNode && len(found) == 0 {
		r.add(block.key, block.path, "is empty; give ca, cert and key, or enabled: true")
	}
	for _, m := range found {
		r.place("tls."+m.key.Value, m)
		switch m.key.Value {
		case "enabled":
			if s := r.setting(m); s != "" {
				t.Enabled, said = r.parseBool(m, s, false)
			}
		case "ca":
			t.CA = r.filename(m)
		case "cert":
			t.Cert = r.filename(m)
		case "key":
			t.Key = r.filename(m)
		default:
			r.unknown(m, []string{"enabled", "ca", "cert", "key"}, map[string]string{
				"cafile": "ca", "cacert": "ca", "certfile": "cert", "certificate": "cert", "keyfile": "key", "tls": "enabled",
			})
		}
	}
	if (t.Cert == "") != (t.Key == "") {
		r.add(block.key, block.path, "a certificate needs its key; give both cert and key")
	}
	if !said {
		t.Enabled = t.CA != "" || t.Cert != ""
	}
	return t
}

// retry reads the retry block.
func (r *reader) retry(block member) retry.Config {
	var c retry.Config
	clean := len(r.problems)
	found := r.members(block.value, block.path, "write base: 1s, max: 3s and retries: 3 on the next lines, indented")
	if block.value.Kind == yaml.MappingNode && len(found) == 0 {
		r.add(block.key, block.path, "is empty; give base, max or retries, or remove the block for no retries")
	}
	for _, m := range found {
		switch m.key.Value {
		case "base":
			c.Base, _ = r.duration(m, "1s", "give the first pause, such as 1s")
		case "max":
			c.Max, _ = r.duration(m, "3s", "give the longest pause, such as 3s")
		case "retries":
			var ok bool
			if c.Retries, ok = r.int(m); ok && c.Retries == 0 {
				r.add(m.value, m.path, "is 0; remove the block for no retries")
			}
		default:
			r.unknown(m, []string{"base", "max", "retries"}, map[string]string{
				"basesleeptime": "base", "basesleeptimemilliseconds": "base", "maxsleeptimemilliseconds": "max", "maxretries": "retries", "attempts": "retries",
			})
		}
	}
	if err := c.Validate(); err != nil && len(r.problems) == clean {
		r.add(block.key, block.path, "%s", strings.TrimPrefix(err.Error(), "retry: "+registry.ErrInvalid.Error()+": "))
	}
	return c
}
