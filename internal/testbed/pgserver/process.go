package pgserver

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// ErrAbsent says that a program is not installed.
var ErrAbsent = errors.New("not installed")

// account is the user of Debian's package.
const account = "postgres"

// bin is the folder of the newest PostgreSQL.
func bin() (string, error) {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	if len(found) > 0 {
		newest := slices.MaxFunc(found, func(a, b string) int { return major(a) - major(b) })
		return filepath.Dir(newest), nil
	}
	path, err := exec.LookPath("initdb")
	if err != nil {
		return "", fmt.Errorf("PostgreSQL is %w (Debian's package postgresql)", ErrAbsent)
	}
	return filepath.Dir(path), nil
}

func major(path string) int {
	n, _ := strconv.Atoi(strings.Split(path, "/")[4])
	return n
}

// A folder is where servers keep what is theirs.
type folder struct {
	path string
	owns *user.User // nil: this process's user runs the servers
}

func newFolder() (*folder, error) {
	path, err := os.MkdirTemp("", "elasticron-postgres-")
	if err != nil {
		return nil, err
	}
	f := &folder{path: path}
	if os.Geteuid() == 0 {
		if f.owns, err = user.Lookup(account); err != nil {
			return nil, errors.Join(fmt.Errorf("root cannot run PostgreSQL, and the user %s is %w: %w", account, ErrAbsent, err), os.RemoveAll(path))
		}
		if err := f.give(path); err != nil {
			return nil, errors.Join(err, os.RemoveAll(path))
		}
	}
	return f, nil
}

// give makes a file or folder the servers' own.
func (f *folder) give(path string) error {
	if f.owns == nil {
		return nil
	}
	uid, _ := strconv.Atoi(f.owns.Uid)
	gid, _ := strconv.Atoi(f.owns.Gid)
	return os.Chown(path, uid, gid)
}

// write makes a file of the servers'.
func (f *folder) write(name, text string) (path string, err error) {
	path = filepath.Join(f.path, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return "", err
	}
	return path, f.give(path)
}

// command runs a program as the servers' user.
func (f *folder) command(name string, arguments ...string) *exec.Cmd {
	cmd := exec.Command(name, arguments...) //nolint:gosec // of this package's own making
	cmd.Dir = f.path
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "TZ=UTC"}
	if f.owns != nil {
		become(cmd, f.owns)
	}
	return cmd
}

// run runs a program to its end.
func (f *folder) run(name string, arguments ...string) error {
	out, err := f.command(name, arguments...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", filepath.Base(name), err, out)
	}
	return nil
}

// guard runs a program and ends it when standard input ends, as it does with the process that holds
// the other end. Unless it is told to keep it, the folder goes too.
const guard = `trap '' PIPE
folder=$1 log=$2 signal=$3
shift 3
"$@" </dev/null >>"$log" 2>&1 &
server=$!
keep=
while read -r word; do keep=$word; done
kill -"$signal" "$server" 2>/dev/null
wait "$server"
[ -n "$keep" ] || rm -rf "$folder"`

// A process is a server under a guard.
type process struct {
	stdin io.WriteCloser
	ended func() error // waits for the guard, once
	log   string
}

// start starts a program that signal ends at once.
func (f *folder) start(log, signal, name string, arguments ...string) (*process, error) {
	log = filepath.Join(f.path, log)
	cmd := f.command("sh", append([]string{"-c", guard, "sh", f.path, log, signal, name}, arguments...)...)
	detach(cmd)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &process{stdin: stdin, ended: sync.OnceValue(cmd.Wait), log: log}, nil
}

// stop ends the server at once, as a crash would; its data stays.
func (p *process) stop() {
	_, _ = io.WriteString(p.stdin, "keep\n")
	_ = p.stdin.Close()
	_ = p.ended()
}

// printed is the end of what the server has said.
func (p *process) printed() string {
	text, _ := os.ReadFile(p.log)
	return string(text[max(0, len(text)-2000):])
}
