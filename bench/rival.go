package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// A rival is go-etcd-cron, built from a source folder that whoever runs this gives.
type rival struct {
	source string // "" where there is none
	dir    string // where it is built
	built  string
}

const module = "github.com/elasticron/elasticron/bench"

var errNoSource = errors.New("no -go-etcd-cron")

// program builds it once, in a workspace outside of the repository.
func (r *rival) program(ctx context.Context) (string, error) {
	switch {
	case r.built != "":
		return r.built, nil
	case r.source == "":
		return "", errNoSource
	}
	source, err := filepath.Abs(r.source)
	if err != nil {
		return "", err
	}
	here, err := command(ctx, nil, "go", "list", "-m", "-f", "{{.Dir}}", module)
	if err != nil {
		return "", err
	}
	if err := r.workspace(here, source); err != nil {
		return "", err
	}
	built := filepath.Join(r.dir, "goetcdcron")
	work := []string{"GOWORK=" + filepath.Join(r.dir, "go.work")}
	if _, err = command(ctx, work, "go", "build", "-o", built, filepath.Join(r.dir, "bench", "goetcdcron", "main.go")); err != nil {
		return "", err
	}
	r.built = built
	return built, nil
}

// workspace has a copy of what the contender is made of, in a module of this name that
// requires nothing: so go-etcd-cron gets the versions of etcd's client that it asks for.
func (r *rival) workspace(here, source string) error {
	copied := filepath.Join(r.dir, "bench")
	for _, folder := range []string{"goetcdcron", filepath.Join("internal", "contest")} {
		if err := os.CopyFS(filepath.Join(copied, folder), os.DirFS(filepath.Join(here, folder))); err != nil {
			return err
		}
	}
	work := fmt.Sprintf("go 1.26.0\n\nuse (\n\t%q\n\t%q\n)\n", copied, source)
	return errors.Join(
		os.WriteFile(filepath.Join(copied, "go.mod"), []byte("module "+module+"\n\ngo 1.26.0\n"), 0o600),
		os.WriteFile(filepath.Join(r.dir, "go.work"), []byte(work), 0o600))
}

func command(ctx context.Context, env []string, words ...string) (string, error) {
	cmd := exec.CommandContext(ctx, words[0], words[1:]...) //nolint:gosec // of this package's own making
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		err = fmt.Errorf("%s: %w: %s", strings.Join(words, " "), err, exit.Stderr)
	}
	return strings.TrimSpace(string(out)), err
}

// quoted are the figures of go-etcd-cron at commit 0e8ef88 that are told where it cannot be
// built. They were measured once, on two cores that etcd 3.5.21 shared, with fsync, and
// not in this program.
var quoted = map[string]string{
	"recorded":  "13,808 to 14,929 triggers/s, three instances in one process",
	"due-10000": "p50 15 ms, p99 32 ms, max 32 ms, one-shot jobs",
	"crash":     "20.03 s, of three processes",
	"start":     "6,690 registrations a second",
}
