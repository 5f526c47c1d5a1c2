package job

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/elasticron/elasticron/core"
	"github.com/elasticron/elasticron/internal/field"
	"github.com/elasticron/elasticron/job/link"
)

// Script runs a command for each item. It fails with a *ScriptError when the command exits
// with anything but 0. No shell is involved: for one, write sh -c '…'.
type Script struct {
	// Command is a command line. It is split at spaces, tabs and line ends that stand in
	// neither "" nor ''. Those quotes go, all else stays: a backslash means nothing. ElasticJob
	// splits at spaces alone, and hands on other arguments where there are quotes, tabs or
	// backslashes: see Differences in the package's documentation.
	Command string
	// Args are the command and its arguments, in place of Command.
	Args []string
	// Dir is the folder in which it runs, "" that of this process.
	Dir string
	// Env are settings NAME=value besides the environment of this process.
	Env []string
	// Timeout bounds one run. 0 is no bound.
	Timeout time.Duration
	// Grace is how long the command has to end by itself, once its context has ended, until
	// it is killed; and how long what it has left behind may hold its output. 0 is 5 s.
	Grace time.Duration
	// MaxOutput bounds what is kept of its output and its errors together, in bytes: the
	// last of them. 0 is 64 KiB.
	MaxOutput int
	// Output gets what was kept, after each run. It may be nil.
	Output func(s core.Shard, output []byte)
}

// A ScriptError is the error of a command that has failed.
type ScriptError struct {
	// Code is its exit code, -1 when it was killed or did not start.
	Code int
	// Output is the end of what it wrote.
	Output []byte
	// Err says what happened; the cause of the context when that ended it.
	Err error
}

func (e *ScriptError) Error() string {
	text := fmt.Sprintf("script: %v", e.Err)
	if line := lastLine(e.Output); line != "" {
		text += ": " + line
	}
	return text
}

// Unwrap returns what happened.
func (e *ScriptError) Unwrap() error { return e.Err }

// Validate reports what is wrong, as *core.ConfigError.
func (c *Script) Validate() error {
	var errs []error
	if _, err := c.args(); err != nil {
		errs = append(errs, err)
	}
	if c.Command != "" && len(c.Args) > 0 {
		errs = append(errs, field.Errorf("Command", "is given, and Args too; leave one"))
	}
	if c.Timeout < 0 || c.Grace < 0 || c.MaxOutput < 0 {
		errs = append(errs, field.Errorf("Timeout", "Timeout, Grace and MaxOutput are not negative; leave them out for their defaults"))
	}
	return errors.Join(errs...)
}

func (c *Script) args() ([]string, error) {
	args := c.Args
	if len(args) == 0 {
		var err error
		if args, err = split(c.Command); err != nil {
			return nil, err
		}
	}
	if len(args) == 0 || args[0] == "" {
		return nil, field.Errorf("Command", "is empty; give the command to run, such as scripts/reindex.sh")
	}
	return args, nil
}

// Run implements core.Job.
func (c *Script) Run(ctx context.Context, s core.Shard) error {
	args, err := c.args()
	if err != nil {
		return err
	}
	if c.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, c.Timeout, fmt.Errorf("%w after %v", link.ErrTimeout, c.Timeout))
		defer cancel()
	}
	sharding := contextOf(s)
	grace := cmp.Or(c.Grace, 5*time.Second)
	out := &tail{max: cmp.Or(c.MaxOutput, 64<<10)}
	cmd := exec.CommandContext(ctx, args[0], append(args[1:len(args):len(args)], sharding)...) //nolint:gosec // to run the command that is configured is its purpose
	cmd.Dir = c.Dir
	cmd.Env = append(append(os.Environ(), c.Env...), environment(s, sharding)...)
	cmd.Stdout, cmd.Stderr = out, out
	group := newGroup(cmd)
	killed := make(chan struct{})
	var kill *time.Timer
	cmd.Cancel = func() error {
		kill = time.AfterFunc(grace, func() {
			defer close(killed)
			group.kill()
		})
		group.end()
		return nil
	}
	cmd.WaitDelay = grace + time.Second // the group is killed before exec gives up on it
	if ctx.Err() == nil {
		err = cmd.Run()
	} else {
		err = ctx.Err()
	}
	if kill != nil && !kill.Stop() {
		<-killed
	}
	group.kill() // what it left behind
	if c.Output != nil {
		c.Output(s, out.bytes())
	}
	if err == nil {
		return nil
	}
	if cmd.Process == nil {
		err = cmp.Or(c.noFolder(), err)
	}
	return scriptError(ctx, err, out.bytes())
}

// noFolder is why nothing can run in Dir. The error of a command that did not start names the command even then.
func (c *Script) noFolder() error {
	if c.Dir == "" {
		return nil
	}
	info, err := os.Stat(c.Dir)
	switch {
	case err != nil:
		return fmt.Errorf("the folder in which it is to run: %w", err)
	case !info.IsDir():
		return fmt.Errorf("the folder in which it is to run: %s is no folder", c.Dir)
	}
	return nil
}

func scriptError(ctx context.Context, err error, output []byte) error {
	e := &ScriptError{Code: -1, Output: output, Err: err}
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		e.Code = exit.ExitCode()
	}
	switch {
	case ctx.Err() != nil:
		e.Err = context.Cause(ctx)
	case errors.Is(err, exec.ErrWaitDelay):
		e.Code, e.Err = 0, errors.New("it has ended, and what it started held its output open; redirect that, or wait for it")
	}
	return e
}

// split takes a command line apart, where it has no tabs and line ends as commons-exec does for
// ElasticJob; what that then does to the arguments is not done here. A library of shells would
// take a backslash for an escape, and not run the same command.
func split(line string) ([]string, error) {
	var args []string
	var word strings.Builder
	open, begun := rune(0), false
	for _, r := range line {
		switch {
		case open != 0 && r == open:
			open = 0
		case open != 0:
			word.WriteRune(r)
		case r == '"' || r == '\'':
			open, begun = r, true
		case r == ' ' || r == '\t' || r == '\n' || r == '\r':
			if begun {
				args = append(args, word.String())
			}
			word.Reset()
			begun = false
		default:
			begun = true
			word.WriteRune(r)
		}
	}
	if open != 0 {
		return nil, field.Errorf("Command", "has a %c that is not closed; close it", open)
	}
	if begun {
		args = append(args, word.String())
	}
	return args, nil
}

var _ core.Job = (*Script)(nil)
