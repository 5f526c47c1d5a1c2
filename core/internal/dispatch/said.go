package dispatch

import "fmt"

// Text is how an error reads. The error may be the user's, and its Error may panic, end its goroutine, or ask for
// whatever lock: the text says what it did, and nobody should hold one.
func Text(err error) string {
	text, _ := said(err)
	return text
}

// said is Text, and whether Error has returned it.
func said(err error) (text string, returned bool) {
	type words struct {
		text     string
		returned bool
	}
	heard := make(chan words, 1)
	go func() { // for one that ends its goroutine, as testing.T.FailNow does
		is := words{text: "Error ended its goroutine"}
		defer func() { heard <- is }()
		defer func() {
			if v := recover(); v != nil {
				is.text = "panic in Error: " + panicText(v)
			}
		}()
		is = words{err.Error(), true}
	}()
	is := <-heard
	return is.text, is.returned
}

// panicText is how what was given to panic reads, or its type where that panics too.
func panicText(v any) (text string) {
	defer func() {
		if recover() != nil {
			text = fmt.Sprintf("%T", v)
		}
	}()
	return fmt.Sprint(v)
}

// mostWrapped bounds how many errors Find looks at.
const mostWrapped = 1000

// Find calls is with an error and with those that it wraps, outermost first, until it returns true, which Find reports.
// Errors may be the user's: of those that wrap each other in a circle it sees some, and what panics it takes for no.
func Find(err error, is func(error) bool) (found bool) {
	defer func() {
		if recover() != nil {
			found = false
		}
	}()
	left := mostWrapped
	return find(err, is, &left)
}

func find(err error, is func(error) bool, left *int) bool {
	if *left--; err == nil || *left < 0 {
		return false
	}
	if is(err) {
		return true
	}
	switch x := err.(type) { //nolint:errorlint // this is what unwraps
	case interface{ Unwrap() error }:
		return find(x.Unwrap(), is, left)
	case interface{ Unwrap() []error }:
		for _, err := range x.Unwrap() {
			if find(err, is, left) {
				return true
			}
		}
	}
	return false
}
