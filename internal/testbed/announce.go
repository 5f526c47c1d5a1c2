package testbed

import (
	"fmt"
	"os"
	"strings"
	"sync"
)

var announced sync.Map

// announce says each thing once, even when all tests pass. `go test`
// drops what passing packages print, so where the system shows the go command's own
// standard error it goes there, and else to this process's.
func announce(text string) {
	if _, said := announced.LoadOrStore(text, true); said {
		return
	}
	out := goStderr()
	if out == nil {
		fmt.Fprintln(os.Stderr, text)
		return
	}
	defer out.Close()
	fmt.Fprintln(out, text)
}

// goStderr is nil unless the parent is the go command and /proc is there.
func goStderr() *os.File {
	parent := fmt.Sprintf("/proc/%d", os.Getppid())
	name, err := os.ReadFile(parent + "/comm")
	if err != nil || strings.TrimSpace(string(name)) != "go" {
		return nil
	}
	out, err := os.OpenFile(parent+"/fd/2", os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return nil
	}
	return out
}
