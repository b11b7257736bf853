package builtin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"taskledger/behaviors"
	"taskledger/events"
)

const (
	// execOutputJSON bounds each output in a result: two of them and the rest stay within events.MaxPayloadBytes.
	execOutputJSON = 100 << 10
	// execErrorBytes bounds each output in the properties of a failure, which is stored with every attempt.
	execErrorBytes = 8 << 10
)

// ExecOptions say which programs a node runs.
type ExecOptions struct {
	// Allow lists the programs that may be run. None by default. An entry is a name, looked up in PATH when Exec is
	// called, or an absolute path: then all arguments are the submitter's, and a program that reads files, starts
	// others or interprets what it is given hands the node's user to every submitter, with all that this user may
	// read: the list is no sandbox. Or it is "name=program arg {} arg", parted by blanks: tasks ask for the name, and
	// the arguments are fixed, but for those that the submitter gives in place of {}; without {} there are none.
	Allow []string
	// Env lists the variables that parameters may set, beside LANG, LC_ALL and TZ. Some variables make a program run
	// code of whoever sets them: LD_PRELOAD, BASH_ENV, GIT_SSH_COMMAND and PYTHONPATH, for example.
	Env []string
	// Grace is the time between SIGTERM and SIGKILL. Default 5s, also for a negative value. With more than 10s the
	// engine gives the attempt up before SIGKILL is sent.
	Grace time.Duration
	// Hold, where it is given, is called with the number of each program's process group as soon as the program runs,
	// by many goroutines at once, and release when nothing of the group is left, on Linux before another group can get
	// the number. A process of its own can learn by it which groups to end if this one is killed.
	Hold func(group int) (release func())
}

// ExecParams are the parameters of "exec". No shell is involved.
type ExecParams struct {
	Program string   `json:"program"`        // as the operator allowed it: its name, or the absolute path
	Args    []string `json:"args,omitempty"` // without the program itself
	// Env is the whole environment except PATH, which is the node's. It may have the names that the operator allowed.
	Env     map[string]string `json:"env,omitempty"`
	Dir     string            `json:"dir,omitempty"` // absolute; default "/"
	Timeout Duration          `json:"timeout,omitempty"`
}

// Validate refuses parameters that no node could run: no program, a variable that has no name or is PATH, a directory
// that is not absolute, or a negative time-out.
func (p ExecParams) Validate() error {
	switch {
	case p.Program == "":
		return errors.New("program: missing")
	case p.Dir != "" && !filepath.IsAbs(p.Dir):
		return fmt.Errorf("dir %q: want an absolute path", p.Dir)
	}
	for _, name := range slices.Sorted(maps.Keys(p.Env)) {
		switch {
		case name == "" || strings.ContainsAny(name, "=\x00"):
			return fmt.Errorf("env: %q is no name of a variable", name)
		case name == "PATH":
			return errors.New("env: PATH cannot be given: it is the node's")
		}
	}
	return checkTimeout(p.Timeout)
}

// ExecResult is the result of "exec". Each output is cut to its last 64 KiB, less when much of it is not plain text.
type ExecResult struct {
	ExitCode        int    `json:"exit_code"` // 0; -1 in a failure by a signal
	Stdout          string `json:"stdout,omitempty"`
	Stderr          string `json:"stderr,omitempty"`
	StdoutTruncated bool   `json:"stdout_truncated,omitempty"`
	StderrTruncated bool   `json:"stderr_truncated,omitempty"`
}

// Exec returns the behavior "exec", which runs a program in a process group of its own. What it writes goes to the log
// of the attempt, stdout as information and stderr as errors: see task.Attempt.Output. The whole group is ended when
// the program ends, at the time-out, and when the attempt must stop. When the node is killed the group lives on,
// unless ExecOptions.Hold sees to its end, as that of taskledger's own program does on Linux. A process that leaves
// the group, by setsid for example, always lives on. An exit code other than 0 is a failure with the code "exit" and
// the properties exit_code, stdout and stderr, which the policy retries. It is a final failure if the program is not
// allowed, missing or not executable, or a variable is not allowed.
func Exec(o ExecOptions) *behaviors.Bound[ExecParams, ExecResult] {
	return bind("exec", NewPrograms(o).Run)
}

// Programs runs programs as behavior "exec" does, for a behavior that does other things besides. It may be used
// concurrently.
type Programs struct {
	allowed map[string]allowance // by the name that the operator gave
	env     []string             // names of variables that parameters may give
	grace   time.Duration
	hold    func(group int) (release func())
}

// NewPrograms returns Programs for the options, whose allowed programs it looks up now. Programs needs no closing.
func NewPrograms(o ExecOptions) *Programs {
	r := &Programs{
		allowed: make(map[string]allowance),
		env:     append([]string{"LANG", "LC_ALL", "TZ"}, o.Env...),
		grace:   o.Grace,
		hold:    o.Hold,
	}
	if o.Grace <= 0 {
		r.grace = 5 * time.Second
	}
	for _, entry := range o.Allow {
		name, a := allow(entry)
		r.allowed[name] = a
	}
	return r
}

// Allows reports whether a program may run, and was found.
func (r *Programs) Allows(program string) bool {
	a, allowed := r.allowed[program]
	return allowed && a.err == nil
}

// MaySet reports whether a run may set a variable.
func (r *Programs) MaySet(variable string) bool { return slices.Contains(r.env, variable) }

// NotAllowedError reports a program or a variable that a run asks for and ExecOptions does not name.
type NotAllowedError struct {
	What string // "program", of ExecOptions.Allow, or "variable", of ExecOptions.Env
	Name string
}

// Error names the program or the variable that is not allowed.
func (e *NotAllowedError) Error() string {
	return fmt.Sprintf("%s %q is not allowed on this node", e.What, e.Name)
}

var errExecTimeout = errors.New("program exceeded its time-out")

// Run runs a program within the attempt that ctx belongs to: see Exec. Its errors are the failures of "exec". An
// error wraps a *NotAllowedError where the options do not name the program or a variable.
func (r *Programs) Run(ctx context.Context, p ExecParams) (ExecResult, error) {
	program, ok := r.allowed[p.Program]
	if !ok {
		return ExecResult{}, refuse(CodeRefused, &NotAllowedError{"program", p.Program})
	}
	if program.err != nil {
		return ExecResult{}, startFailure(p.Program, program.err)
	}
	name := p.Program
	if program.fixed {
		if p.Dir != "" { // what a program does may depend on the files there
			err := fmt.Errorf("program %q: its directory is fixed on this node: want none", p.Program)
			return ExecResult{}, refuse(CodeRefused, err)
		}
		name = program.path // programs that are many choose by it
	}
	args, err := program.with(p.Args)
	if err != nil {
		return ExecResult{}, refuse(CodeRefused, fmt.Errorf("program %q: %w", p.Program, err))
	}
	for _, name := range slices.Sorted(maps.Keys(p.Env)) {
		if !r.MaySet(name) {
			return ExecResult{}, refuse(CodeRefused, &NotAllowedError{"variable", name})
		}
	}
	if p.Timeout > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeoutCause(ctx, time.Duration(p.Timeout), errExecTimeout)
		defer stop()
	}
	cmd := &exec.Cmd{
		Path: program.path,
		Args: append([]string{name}, args...),
		Env:  environment(p.Env),
		Dir:  cmp.Or(p.Dir, "/"),
	}
	attempt, _ := behaviors.Attempt(ctx)
	out := output{
		stdout: logged{log: attempt.Output(slog.LevelInfo, true)},
		stderr: logged{log: attempt.Output(slog.LevelError, true)},
	}
	ended, err := runGroup(ctx, cmd, &out, r.grace, r.hold)
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		return ExecResult{}, startFailure(p.Program, err)
	}
	switch {
	case ended && context.Cause(ctx) == errExecTimeout:
		err := fmt.Errorf("%s: %w of %s", p.Program, errExecTimeout, p.Timeout)
		return ExecResult{}, behaviors.Code(events.CodeTimeout, err, out.properties())
	case ended:
		return ExecResult{}, context.Cause(ctx)
	case err != nil:
		properties := out.properties()
		properties["exit_code"] = strconv.Itoa(cmd.ProcessState.ExitCode())
		return ExecResult{}, behaviors.Code(CodeExit, fmt.Errorf("%s: %w", p.Program, err), properties)
	}
	return out.result(), nil
}

func environment(given map[string]string) []string {
	env := []string{"PATH=" + os.Getenv("PATH")}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		env = append(env, name+"="+given[name])
	}
	return env
}

// startFailure is the failure of a program that did not run. Only what can pass by itself, such as too many
// processes, is worth another attempt.
func startFailure(program string, err error) error {
	err = fmt.Errorf("start %s: %w", program, err)
	switch {
	case errors.Is(err, os.ErrNotExist) || errors.Is(err, exec.ErrNotFound):
		return refuse(CodeNotFound, err)
	case errors.Is(err, os.ErrPermission):
		return refuse(CodePermission, err)
	case errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.ENOMEM) || errors.Is(err, syscall.EMFILE) ||
		errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.ETXTBSY) || errors.Is(err, syscall.EIO):
		return err
	}
	return refuse(CodeInvalid, err)
}

// output takes what a program writes.
type output struct{ stdout, stderr logged }

// logged keeps the end of a stream, and passes all of it to the log of the attempt.
type logged struct {
	tail
	log io.Writer
}

// Write never fails: what the log does not take is lost to it alone, and the program goes on.
func (l *logged) Write(b []byte) (int, error) {
	n, err := l.tail.Write(b)
	_, _ = l.log.Write(b)
	return n, err
}

func (o *output) result() (r ExecResult) {
	r.Stdout, r.StdoutTruncated = o.stdout.text(execOutputJSON)
	r.Stderr, r.StderrTruncated = o.stderr.text(execOutputJSON)
	return r
}

func (o *output) properties() map[string]string {
	stdout, _ := o.stdout.text(execErrorBytes)
	stderr, _ := o.stderr.text(execErrorBytes)
	return map[string]string{
		"stdout": strings.ToValidUTF8(stdout, "\uFFFD"),
		"stderr": strings.ToValidUTF8(stderr, "\uFFFD"),
	}
}
