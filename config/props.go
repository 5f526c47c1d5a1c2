package config

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// A setting is a prop that a kind of job or an error handler reads.
type setting struct {
	name, of, text string
	secret         secrecy
}

// A secrecy says where the value of a setting stands.
type secrecy uint8

const (
	isPlain   secrecy = iota
	mayBeKept         // among the props, or where nameEnv or nameFile says
	isKept            // where nameEnv or nameFile says
)

// Those that read settings, besides one error handler each.
const (
	script, request, dataflow = "SCRIPT", "HTTP", "DATAFLOW"
	senders                   = "all that send"
)

var kindSettings = []setting{
	{"script.command.line", script, "the command. It is split at spaces outside of quotes; for a shell write `sh -c '…'`. Must be given.", isPlain},
	{"script.dir", script, "the folder in which it runs. Default: that of the process.", isPlain},
	{"script.timeout.milliseconds", script, "bounds a run. Default: no bound.", isPlain},
	{"script.grace.milliseconds", script, "how long it has to end by itself before it is killed. Default: 5000.", isPlain},
	{"script.output.bytes", script, "how much of its output is kept, the last of it. Default: 65536.", isPlain},
	{"http.uri", request, "the URL, or `http.uriEnv` or `http.uriFile` where it holds a secret. Must be given.", mayBeKept},
	{"http.method", request, "the method. Must be given.", isPlain},
	{"http.data", request, "the body, for a method that has one.", isPlain},
	{"http.content.type", request, "the type of the body.", isPlain},
	{headerPrefix + "NAME", request, "the header NAME, as in `http.header.X-Tenant: north`. One that is a secret, as `Authorization` is, stands where " +
		"`http.headerEnv.NAME` or `http.headerFile.NAME` says.", isPlain},
	{"http.connect.timeout.milliseconds", request, "bounds connecting; 0 is no bound. Default: 3000.", isPlain},
	{"http.read.timeout.milliseconds", request, "bounds the rest of the request, to the last byte of the answer, and has what connecting did not need of its bound besides; 0 is no bound. Default: 5000.", isPlain},
}

var dataflowSettings = []string{"streaming.process", "dataflow.fetch.count", "dataflow.concurrency", "dataflow.count.interval.seconds"}

var handlerSettings = []setting{
	{"notify.limit", senders, "how many messages a minute. Default: 6.", isPlain},
	{"webhook.url", "WEBHOOK", "the URL to which a message is posted, or `webhook.urlEnv` or `webhook.urlFile` where it is a secret.", mayBeKept},
	{"webhook.secret", "WEBHOOK", "signs messages. Secret.", isKept},
	{"email.host", "EMAIL", "the server. Must be given.", isPlain},
	{"email.port", "EMAIL", "its port. Must be given.", isPlain},
	{"email.useSsl", "EMAIL", "TLS from the first byte. Default: true.", isPlain},
	{"email.username", "EMAIL", "who logs in. Default: nobody.", isPlain},
	{"email.password", "EMAIL", "the password. Secret.", isKept},
	{"email.from", "EMAIL", "the sender. Must be given.", isPlain},
	{"email.to", "EMAIL", "the receivers, with commas between. Must be given.", isPlain},
	{"email.cc", "EMAIL", "more receivers.", isPlain},
	{"email.bcc", "EMAIL", "more receivers, whom nobody sees.", isPlain},
	{"email.subject", "EMAIL", "the subject. Default: ElasticJob error message.", isPlain},
	{"email.timeoutMilliseconds", "EMAIL", "bounds sending, at least 1. Default: 10000.", isPlain},
	{"slack.webhook", "SLACK", "the URL. Secret, must be given.", isKept},
	{"dingtalk.webhook", "DINGTALK", "the URL. Secret, must be given.", isKept},
	{"dingtalk.secret", "DINGTALK", "signs messages. Secret.", isKept},
	{"dingtalk.keyword", "DINGTALK", "stands before each message.", isPlain},
	{"wechat.webhook", "WECHAT", "the URL. Secret, must be given.", isKept},
	{"feishu.webhook", "FEISHU", "the URL. Secret, must be given.", isKept},
	{"feishu.secret", "FEISHU", "signs messages. Secret.", isKept},
}

// handlers are the error handlers that come with Elasticron, by name, with the one whose settings
// they read: "" for none.
var handlers = map[string]string{
	"LOG": "", "THROW": "", "IGNORE": "", "STOP": "", "WEBHOOK": "WEBHOOK", "EMAIL": "EMAIL", "SLACK": "SLACK",
	"DINGTALK": "DINGTALK", "WECHAT": "WECHAT", "WECOM": "WECHAT", "FEISHU": "FEISHU", "LARK": "FEISHU",
}

// An asker is a kind of job or an error handler that comes with Elasticron, as one who reads props.
type asker struct {
	name string
	// known are the props that it reads, below the prefixes.
	known, prefixes []string
	// alone: no function of the program reads the job's props, so that each that is nearly a known
	// one is a mistake.
	alone bool
	// open: a function of the program may read more below the prefixes.
	open bool
}

// askerOf is who reads the settings of a name, as the tables have it.
func askerOf(name string) asker {
	a := asker{name: name}
	for _, s := range slices.Concat(kindSettings, handlerSettings) {
		if s.of != name {
			continue
		}
		a.known = append(a.known, s.name)
		if s.secret != isPlain {
			a.known = append(a.known, s.name+"Env", s.name+"File")
		}
		first, _, _ := strings.Cut(s.name, ".")
		if prefix := first + "."; !slices.Contains(a.prefixes, prefix) {
			a.prefixes = append(a.prefixes, prefix)
		}
	}
	return a
}

// askersOf are those who read the props of a job.
func (w work) askersOf(ownKind bool) []asker {
	var all []asker
	switch kind := strings.ToUpper(w.kind); {
	case ownKind:
	case kind == script || kind == request:
		a := askerOf(kind)
		a.alone = true
		all = append(all, a)
	case kind == dataflow:
		all = append(all, asker{name: dataflow, known: dataflowSettings, prefixes: []string{"dataflow.", "streaming."}, open: true})
	}
	of := handlers[strings.ToUpper(w.handler)]
	if of == "" {
		return all
	}
	a := askerOf(of)
	if of != "EMAIL" { // the others post
		a.known = append(a.known, a.prefixes[0]+"connectTimeoutMilliseconds", a.prefixes[0]+"readTimeoutMilliseconds")
	}
	return append(all, a, askerOf(senders))
}

// reads reports whether it reads a prop, or ElasticJob does.
func (a asker) reads(prop string) bool {
	_, _, header := cutHeader(prop)
	return slices.Contains(a.known, prop) || header && a.name == request || lostProps[prop] != ""
}

// refuses says what is wrong with a prop that it would read if it were spelled right, "" for nothing.
func (a asker) refuses(prop string) string {
	below := slices.ContainsFunc(a.prefixes, func(p string) bool { return strings.HasPrefix(prop, p) })
	name := a.name
	if name == senders {
		name = "an error handler"
	}
	switch near := nearest(prop, a.known); {
	case near != "" && (below || a.alone):
		return fmt.Sprintf("is not a setting of %s; did you mean %s?", name, near)
	case below && !a.open:
		return fmt.Sprintf("is not a setting of %s; there are: %s", name, strings.Join(a.known, ", "))
	}
	return ""
}

// misspelled finds the props of a job that look as if its kind or its error handler read them, and
// that neither does. at is where a prop stands.
func (w work) misspelled(props map[string]string, ownKind bool, at func(prop string) *FieldError) []*FieldError {
	askers := w.askersOf(ownKind)
	var problems []*FieldError
	for _, prop := range slices.Sorted(maps.Keys(props)) {
		if slices.ContainsFunc(askers, func(a asker) bool { return a.reads(prop) }) {
			continue
		}
		for _, a := range askers {
			if text := a.refuses(prop); text != "" {
				p := at(prop)
				p.Problem = text
				problems = append(problems, p)
				break
			}
		}
	}
	return problems
}

// settingCalled finds a setting by its name.
func settingCalled(name string) (setting, bool) {
	all := slices.Concat(kindSettings, handlerSettings)
	i := slices.IndexFunc(all, func(s setting) bool { return s.name == name })
	if i < 0 {
		return setting{}, false
	}
	return all[i], true
}

// passwordInURL finds a password in a URL.
var passwordInURL = regexp.MustCompile(`://[^/@:\s]*:[^/@\s]+@`)

// openSecret says what is wrong with a prop that holds a secret, "" for one that does not. What is
// one by its name is what Convert takes out.
func openSecret(name, value string) string {
	part, header, isHeader := cutHeader(name)
	if value == "" || isHeader && part != headerPrefix {
		return ""
	}
	known, given := settingCalled(name)
	file, env := name+"File", name+"Env"
	if isHeader {
		file, env = headerFile+header, headerEnv+header
	}
	fix := fmt.Sprintf("put it in a file that %s names, or in an environment variable that %s names", file, env)
	if !given && !isHeader {
		fix += ", for the function to read"
	}
	const seen = ", which all who read the registry would see; "
	switch {
	case known.secret == isKept, slices.Contains(secretProps, name), secretName(name), isHeader && secretHeader(header):
		return "is a secret" + seen + fix
	case !passwordInURL.MatchString(value):
		return ""
	case given && known.of == script:
		fix = "have the script read it from its environment, or from a file"
	case given && known.secret == isPlain:
		fix = "leave it out"
	}
	return "holds a password" + seen + fix
}
