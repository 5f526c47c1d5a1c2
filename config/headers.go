package config

import (
	"cmp"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"unicode"

	"github.com/elasticron/elasticron/internal/field"
)

// A header of a request is a prop of one of these, with the name of the header behind it.
const (
	headerPrefix = "http.header."
	headerFile   = "http.headerFile."
	headerEnv    = "http.headerEnv."
)

// cutHeader splits a prop that gives a header.
func cutHeader(prop string) (part, name string, ok bool) {
	for _, part := range []string{headerPrefix, headerFile, headerEnv} {
		if name, ok := strings.CutPrefix(prop, part); ok {
			return part, name, true
		}
	}
	return "", "", false
}

// secretHeader reports whether a header is a secret by its name, besides those of secretName.
func secretHeader(name string) bool {
	word := normal(name)
	return strings.HasSuffix(word, "authorization") || strings.HasSuffix(word, "cookie") || strings.HasSuffix(word, "apikey")
}

// takenHeaders are not sent as they are given, with why.
var takenHeaders = map[string]string{
	"Host":              "is that of http.uri; remove it",
	"Content-Length":    "is that of the body; remove it",
	"Transfer-Encoding": "is that of the body; remove it",
	"Shardingcontext":   "is the item's own context; remove it",
}

// headers are those that the props of a job give to its request. Their files are named from the root.
func headers(props map[string]string) (http.Header, []error) {
	var errs []error
	found, given := http.Header{}, map[string]string{}
	if props["http.content.type"] != "" {
		given["Content-Type"] = "http.content.type"
	}
	for _, prop := range slices.Sorted(maps.Keys(props)) {
		part, name, ok := cutHeader(prop)
		if !ok {
			continue
		}
		value, problem := props[prop], error(nil)
		canonical := http.CanonicalHeaderKey(name)
		switch {
		case !validHeader(name):
			problem = fmt.Errorf("names no header; write for example %sX-Tenant", headerPrefix)
		case takenHeaders[canonical] != "":
			problem = fmt.Errorf("%s", takenHeaders[canonical])
		case given[canonical] != "":
			problem = fmt.Errorf("gives a header that %s gives too; leave one", given[canonical])
		case part == headerFile:
			value, problem = secretOfFile(value)
		case part == headerEnv:
			value, problem = secretOf(os.Getenv(value))
		}
		if problem == nil && strings.ContainsFunc(value, func(r rune) bool { return r != '\t' && unicode.IsControl(r) }) {
			problem = fmt.Errorf("gives a header that holds a control character or several lines; remove it")
		}
		given[canonical] = cmp.Or(given[canonical], prop)
		if problem != nil {
			errs = append(errs, field.Errorf("Props."+prop, "%w", problem))
			continue
		}
		found.Set(name, value)
	}
	return found, errs
}

// validHeader reports whether a name is a token of HTTP.
func validHeader(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return !strings.ContainsRune("!#$%&'*+-.^_`|~", r) && (r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r))
	})
}

// secretOfFile is what a file holds, without line breaks at its end.
func secretOfFile(file string) (string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("cannot be read: %w", err)
	}
	return secretOf(strings.TrimRight(string(text), "\r\n"))
}

// secretOf refuses what is empty.
func secretOf(text string) (string, error) {
	if text == "" {
		return "", errAbsent
	}
	return text, nil
}

// errAbsent is told of a secret as package secret tells it, and is fs.ErrNotExist as that is.
var errAbsent error = absent("names what is empty or not set; put the secret there")

type absent string

func (a absent) Error() string { return string(a) }

func (absent) Unwrap() error { return fs.ErrNotExist }
