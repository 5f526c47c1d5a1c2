package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"strings"
	"time"
)

//go:generate go run ../tools/reference

// An about is what the reference and the schema say of a key.
type about struct {
	form      form
	otherwise string // what counts when the key is left out
	text      string
}

// A form is how a value is written: in words, and in JSON Schema.
type form struct {
	words  string
	schema map[string]any
}

// A variable may stand for every value, so that every value may be a text with one.
var aVariable = map[string]any{"type": "string", "pattern": `\$\{`}

func anyOf(schemas ...map[string]any) map[string]any { return map[string]any{"anyOf": schemas} }

const durations = `^[0-9.]+(ns|us|µs|ms|s|m|h)([0-9.]+(ns|us|µs|ms|s|m|h))*$`

var (
	aText      = form{"text", map[string]any{"type": []string{"string", "number", "boolean"}}}
	aName      = form{"the name of an environment variable", map[string]any{"type": "string", "pattern": variableName.String()}}
	aFile      = form{"the name of a file, relative to the folder of this one", map[string]any{"type": "string"}}
	aFlag      = form{"`true` or `false`", anyOf(map[string]any{"type": "boolean"}, aVariable)}
	aNumber    = form{"a whole number", anyOf(map[string]any{"type": "integer"}, aVariable)}
	aDuration  = form{"a duration, such as `90s` or `1h30m`", anyOf(map[string]any{"type": "string", "pattern": durations}, aVariable)}
	someParams = form{"text, or a mapping", anyOf(aText.schema, map[string]any{"type": "object", "additionalProperties": aText.schema})}
	someProps  = form{"a mapping of texts", map[string]any{"type": "object", "additionalProperties": aText.schema}}
)

func oneOf(words ...string) form {
	return form{"`" + strings.Join(words, "` or `") + "`", anyOf(map[string]any{"enum": words}, aVariable)}
}

func durationOr(word string) form {
	return form{aDuration.words + ", or `" + word + "`", anyOf(map[string]any{"const": word}, aDuration.schema)}
}

func flagOr(word string) form {
	return form{"`true`, `false` or `" + word + "`", anyOf(map[string]any{"const": word}, aFlag.schema)}
}

// A described key is one of the registry block.
type described struct {
	key   string
	about about
}

var registryAbout = []described{
	{"url", about{aText, "none: it must be given", "Where the registry is: `scheme://host:port,host:port/namespace?setting=value`. The scheme is that of an adapter which the program imports."}},
	{"username", about{aText, "that of the adapter's environment variable, if any", "Who logs in."}},
	{"passwordFile", about{aFile, "none", "The file that holds the password. A line break at its end does not count."}},
	{"passwordEnv", about{aName, "none", "The environment variable that holds the password."}},
}

var tlsAbout = []described{
	{"enabled", about{aFlag, "`true` when a file is given", "Whether the connection is secured."}},
	{"ca", about{aFile, "the authorities of the system", "The authority that signed the servers, in PEM form."}},
	{"cert", about{aFile, "none", "The certificate that is shown to the servers, in PEM form. It needs `key`."}},
	{"key", about{aFile, "none", "The key of `cert`, in PEM form."}},
}

var retryAbout = []described{
	{"base", about{aDuration, "`1s`", "The first pause."}},
	{"max", about{aDuration, "`3s`", "The longest pause: each is twice the one before."}},
	{"retries", about{aNumber, "3", "How often a call is repeated."}},
}

const (
	registryText = "How the registry is reached. No password stands here, nor in the url."
	tlsText      = "Secures the connection."
	retryText    = "Repeats what the registry refuses for the moment: connecting, reads, and commits that were certainly not applied. " +
		"A commit whose outcome is unknown is never repeated. Without the block nothing is repeated but what the adapter repeats of its own accord, which are reads."
	jobsText     = "The jobs: a mapping from the name of each to its settings."
	defaultsText = "What counts for every job that does not say otherwise: the keys of a job, but for `cron`. Of `props` each counts by itself, " +
		"beside those of the job. A file of ElasticJob has no such block."
	jobText = "The name of a job is 1 to 255 bytes without `/`, and without space at its ends."
)

// A settingOf is a setting of a url, with the schemes that know it, and what it may be: refuses says
// what is wrong with a value, "" for nothing, and example is one that is right.
type settingOf struct {
	name, schemes, text string
	refuses             func(value string) string
	example             string
}

var urlSettings = []settingOf{
	{"session-timeout", "etcd, zookeeper, postgres, embedded", "How long an instance that is silent counts as alive: `6s` by default, `500ms` to `10m`.",
		durationIn(500*time.Millisecond, 10*time.Minute), "6s"},
	{"dial-timeout", "etcd, zookeeper, postgres", "How long connecting at start may take: `5s` by default.", durationIn(0, math.MaxInt64), "6s"},
	{"chroot", "zookeeper", "The node below which everything stands.", aChroot, "/apps"},
	{"max-ops", "etcd", "How many operations a commit holds at most; the server's `--max-txn-ops` must allow for them.", countFrom(1), "40"},
	{"max-bytes", "etcd", "How large a commit is at most, in bytes.", countFrom(1), "1048576"},
	{"max-conns", "postgres", "How many connections are held at most: 5 by default, at least 2.", countFrom(2), "5"},
	{"addr", "embedded", "Where the server in the process listens, for others.", anything, ""},
	{"namespace", "embedded", "The namespace, which other schemes have in the path.", anything, ""},
}

// blockSettings are those that the block writes into the url.
var blockSettings = []string{"username", "password-file", "password-env", "tls", "ca", "cert", "key"}

func settingsOf(b *strings.Builder, list []setting) {
	for _, s := range list {
		item(b, "`"+s.name+"` "+s.of+": "+s.text)
	}
	b.WriteString("\n")
}

func (a about) schema() map[string]any {
	s := map[string]any{"description": strings.ReplaceAll(a.text, "`", "") + " Default: " + strings.ReplaceAll(a.otherwise, "`", "") + "."}
	maps.Copy(s, a.form.schema)
	return s
}

func objectOf(text string, keys []described, required ...string) map[string]any {
	properties := map[string]any{}
	for _, k := range keys {
		properties[k.key] = k.about.schema()
	}
	s := map[string]any{"type": "object", "description": strings.ReplaceAll(text, "`", ""), "additionalProperties": false, "properties": properties}
	if len(required) > 0 {
		s["required"] = required
	}
	return s
}

// jobAbout are all keys of a job.
func jobAbout() []described {
	var keys []described
	for _, f := range fields {
		keys = append(keys, described{f.key, f.about})
	}
	for _, w := range works {
		keys = append(keys, described{w.key, w.about})
	}
	return keys
}

func requires(key string) map[string]any { return map[string]any{"required": []string{key}} }

// keyIn asks for a key whose value is of a schema.
func keyIn(key string, of map[string]any) map[string]any {
	return map[string]any{"required": []string{key}, "properties": map[string]any{key: of}}
}

// Schema is the JSON Schema of the file, for editors.
func Schema() []byte {
	reg := objectOf(registryText, registryAbout, "url")
	blocks := reg["properties"].(map[string]any) //nolint:forcetypeassert // objectOf has made it
	blocks["tls"] = objectOf(tlsText, tlsAbout)
	blocks["retry"] = objectOf(retryText, retryAbout)
	job := objectOf(jobText, jobAbout(), "cron")
	shared := objectOf(defaultsText, nil)
	for _, d := range jobAbout() {
		if d.key != "cron" {
			shared["properties"].(map[string]any)[d.key] = map[string]any{"$ref": "#/properties/jobs/additionalProperties/properties/" + d.key} //nolint:forcetypeassert // as above
		}
	}
	root := map[string]any{
		"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Elasticron", "description": "The registry and the jobs of a program.",
		"type": "object", "additionalProperties": false, "required": []string{"registry"},
		"properties": map[string]any{
			"registry": reg,
			"defaults": shared,
			"jobs":     map[string]any{"type": "object", "description": jobsText, "additionalProperties": job},
		},
		"if":   keyIn("defaults", requires("shardingTotalCount")),
		"else": map[string]any{"properties": map[string]any{"jobs": map[string]any{"additionalProperties": requires("shardingTotalCount")}}},
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(root); err != nil {
		panic(err) // it holds texts and maps alone
	}
	return b.Bytes()
}

// Reference is the page docs/configuration.md.
func Reference() string {
	var b strings.Builder
	b.WriteString("<!-- Made by go generate ./config of the tables in it: change those. -->\n\n# Configuration reference\n\n")
	paragraph(&b, "One YAML file configures a program: the registry, and the jobs. `config.Load` reads it, `elasticron check FILE` says what is wrong with it and when its jobs fire, "+
		"and [jobs.schema.json](jobs.schema.json) lets an editor complete it: write `# yaml-language-server: $schema=jobs.schema.json` as its first line.")
	b.WriteString("```yaml\nregistry:\n  url: ${REGISTRY:-etcd://127.0.0.1:2379/shop}\njobs:\n  hello:\n    cron: 0/5 * * * * ?\n    shardingTotalCount: 3\n```\n\n")
	paragraph(&b, "In every value `${NAME}` is an environment variable, `${NAME:-default}` has a default for one that is unset or empty, and `$$` is a dollar. "+
		"Unknown and repeated keys, anchors, aliases and tags are refused. A file of ElasticJob is read as well: see [migration.md](migration.md).")
	b.WriteString("## registry\n\n")
	paragraph(&b, registryText)
	keysOf(&b, "registry.", registryAbout)
	b.WriteString("### Settings of the url\n\n")
	paragraph(&b, "They stand behind the url, as in `zookeeper://127.0.0.1:2181/shop?chroot=/apps&session-timeout=10s`.")
	for _, s := range urlSettings {
		item(&b, fmt.Sprintf("`%s` (%s): %s", s.name, s.schemes, s.text))
	}
	b.WriteString("\n")
	paragraph(&b, "What the other keys of this block say may stand there too, as `"+strings.Join(blockSettings, "`, `")+"`; a password never.")
	b.WriteString("### registry.tls\n\n")
	paragraph(&b, tlsText)
	keysOf(&b, "registry.tls.", tlsAbout)
	b.WriteString("### registry.retry\n\n")
	paragraph(&b, retryText)
	keysOf(&b, "registry.retry.", retryAbout)
	b.WriteString("## defaults\n\n")
	paragraph(&b, defaultsText)
	b.WriteString("```yaml\ndefaults:\n  timeZone: Europe/Berlin\n  jobErrorHandlerType: WEBHOOK\n  props: {webhook.urlEnv: ALERTS_URL}\n```\n\n")
	b.WriteString("## jobs\n\n")
	paragraph(&b, jobsText+" "+jobText+" The names of the keys are ElasticJob's where it has one. In Go the same is a `core.JobConfig`.")
	for _, f := range fields {
		entry(&b, f.key, f.about, "`JobConfig."+f.name+"`")
	}
	b.WriteString("## What a job does\n\n")
	paragraph(&b, "These keys count for this process alone and are not written to the registry. Their settings stand among `props`: see below.")
	for _, w := range works {
		entry(&b, w.key, w.about, "")
	}
	b.WriteString("## Settings among props\n\n")
	paragraph(&b, "A prop that begins as the settings of the job's type or error handler do, and is none of them, is refused, as is one that holds a secret: "+
		"by its name (`db.password`, `api.token`) or by a password in a URL. A file that such a setting names, as `http.uriFile` does, is relative to the folder of the YAML file; what a function reads is its own matter.")
	b.WriteString("### Of the type\n\n")
	settingsOf(&b, kindSettings)
	b.WriteString("### Of jobErrorHandlerType\n\n")
	paragraph(&b, "A secret stands in the environment variable that the same name with `Env` at its end names, as in `email.passwordEnv: MAIL_PASSWORD`, "+
		"or in the file that it names with `File`, relative to the folder of the YAML file. Where there is a webhook, `connectTimeoutMilliseconds` and `readTimeoutMilliseconds` "+
		"bound a message, at least 1 each, 3000 and 5000 by default, as in `dingtalk.readTimeoutMilliseconds`.")
	settingsOf(&b, handlerSettings)
	return strings.TrimRight(b.String(), "\n") + "\n"
}

func keysOf(b *strings.Builder, prefix string, keys []described) {
	for _, k := range keys {
		item(b, fmt.Sprintf("`%s%s`: %s. %s Default: %s.", prefix, k.key, k.about.form.words, k.about.text, k.about.otherwise))
	}
	b.WriteString("\n")
}

func entry(b *strings.Builder, key string, a about, name string) {
	fmt.Fprintf(b, "### %s\n\n", key)
	if name != "" {
		name = ", " + name + " in Go"
	}
	paragraph(b, strings.ToUpper(a.form.words[:1])+a.form.words[1:]+name+". Default: "+a.otherwise+".")
	paragraph(b, a.text)
}

const columns = 118

func paragraph(b *strings.Builder, text string) { b.WriteString(wrap(text, "", "") + "\n\n") }

func item(b *strings.Builder, text string) { b.WriteString(wrap(text, "- ", "  ") + "\n") }

// wrap breaks a text into lines.
func wrap(text, first, rest string) string {
	var b strings.Builder
	line := first
	for i, word := range words(text) {
		switch {
		case i == 0:
			line += word
		case len([]rune(line))+1+len([]rune(word)) > columns:
			b.WriteString(line + "\n")
			line = rest + word
		default:
			line += " " + word
		}
	}
	return b.String() + line
}

// words splits at spaces that are not within backticks.
func words(text string) []string {
	code := false
	return strings.FieldsFunc(text, func(r rune) bool {
		if r == '`' {
			code = !code
		}
		return r == ' ' && !code
	})
}
