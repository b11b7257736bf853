package cluster

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"taskledger/integration/robustness/check"
	"taskledger/integration/robustness/history"
	"taskledger/integration/robustness/traffic"
)

const (
	// terminals counts the people who type commands at a time; each thinks between two. Every command is a process: a
	// modest share of the traffic.
	terminals     = 2
	commandThinks = 400 * time.Millisecond
	// CommandWithin is its --timeout: longer than most faults. endsWithin bounds the time that an interrupted command
	// may take to end.
	CommandWithin = 20 * time.Second
	endsWithin    = 15 * time.Second
	// operateWithin is the --timeout of commands that are no part of the traffic.
	operateWithin = time.Minute
)

// BuildProgram builds the program whose commands are typed, in a directory.
func BuildProgram(ctx context.Context, dir string) (path string, err error) {
	path = filepath.Join(dir, "taskledger")
	build := exec.CommandContext(ctx, "go", "build", "-o", path, "taskledger/cmd/node")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return "", fmt.Errorf("build the command line: %w", err)
	}
	return path, nil
}

// Terminal is where people type commands of the program, whose exit codes and output are all that they are told.
type Terminal struct {
	Links
	program string
	calls   *traffic.Calls
	begun   int64 // of the run

	mu       sync.Mutex
	untimely []untimely // commands that were refused for their clock
	Left     []string   // senders whose mail commands could not remove

	hushed         atomic.Bool // nobody types for now
	made, answered atomic.Int64
	stop           context.CancelFunc
	typing         sync.WaitGroup
}

// startTerminal has people type commands until EndTerminal.
func (r *Cluster) startTerminal() error {
	if r.Settings.Program == "" {
		return nil
	}
	l, err := r.NewLinks(nil)
	if err != nil {
		return err
	}
	t := &Terminal{Links: l, program: r.Settings.Program, calls: traffic.NewCalls(r.Operations), begun: r.Begin}
	ctx, stop := context.WithCancel(context.Background())
	t.stop = stop
	for i := range terminals {
		t.typing.Go(func() {
			source := traffic.NewSource(fmt.Sprintf("typed-%c", 'a'+i), r.Settings.Seed)
			source.Few = true
			for ; ctx.Err() == nil; Sleep(ctx, source.Think(commandThinks)) {
				if t.hushed.Load() {
					continue
				}
				q := source.Next()
				for !typable(q) {
					q = source.Submit()
				}
				q.Errand, q.Brook = false, false // words has two behaviors, and these are none of them
				if broken := t.enter(ctx, i+1, q); broken != "" {
					r.Broken(check.Clean, "%s", broken)
				}
			}
		})
	}
	r.Terminal = t
	return nil
}

// typable reports whether people type a request: where the program draws an id, it might not live to print that, what
// breaks a limit ends it as a misuse, and schedules are left to the other clients.
func typable(q traffic.Request) bool {
	return q.Forbidden == "" && !q.Verb.OfSchedule() && q.Verb != history.Settings && (q.Verb != history.Submit || q.Task != "")
}

// EndTerminal interrupts what runs, and returns when all has ended.
func (r *Cluster) EndTerminal() (answered int) {
	t := r.Terminal
	if t == nil {
		return 0
	}
	t.stop()
	t.typing.Wait()
	r.judgeUntimely()
	return int(t.answered.Load())
}

// Hush has nobody type for now, or goes on.
func (t *Terminal) Hush(on bool) { t.hushed.Store(on) }

// untimely is a command that was refused for its caller's clock, and when it ran.
type untimely struct {
	from, until int64
	said        string
}

// judgeUntimely holds that commands were refused for their caller's clock, which is right, only while that of a node
// was wrong.
func (r *Cluster) judgeUntimely() {
	for _, u := range r.Terminal.untimely {
		if !slices.ContainsFunc(r.Faults, func(f history.Fault) bool { return stepsClock(f) && f.From < u.until && u.from < f.Until }) {
			r.Broken(check.Clean, "a command was refused for its clock, from %s to %s of the run, when no clock was wrong: %s",
				time.Duration(u.from), time.Duration(u.until), u.said)
		}
	}
	r.Terminal.untimely = nil
}

// enter types one command and records it. It returns what the program did that it must not do: to crash, to end with a
// code that does not go with what was asked, or not to print what it has done.
func (t *Terminal) enter(ctx context.Context, who int, q traffic.Request) (broken string) {
	c := &typed{Terminal: t, request: q}
	c.begin(q.Operation(who, t.begun))
	ended := c.start(ctx)
	c.noteLeft(c.said.String())
	code := codeDone
	if exit, is := errors.AsType[*exec.ExitError](ended); is {
		code = exit.ExitCode()
		if status, is := exit.Sys().(syscall.WaitStatus); is && status.Signal() == syscall.SIGINT { // it was interrupted before it heard signals
			code = codeInterrupted
		}
	} else if errors.Is(ended, context.Canceled) { // typing ended before it began
		code = codeInterrupted
	} else if ended != nil { // it never began, or did not end when it was interrupted
		code, broken = codeUnavailable, ended.Error()
	}
	if broken += c.settle(code); broken != "" {
		broken = fmt.Sprintf("taskledger %s: %s; it said %q", strings.Join(c.args(), " "), broken, c.said.String())
	}
	return broken
}

// typed is a command.
type typed struct {
	*Terminal
	request traffic.Request
	open    *traffic.Call // nil when all is answered that is recorded of it
	told    []reply
	said    bytes.Buffer // beside its output
}

// reply is a line of output: the id of a task, its outcome, or a task.
type reply struct {
	Joined bool
	Status string
	Starts json.RawMessage `json:"schedule_not_before"`
	Result json.RawMessage
	Error  *struct{ Code string }
}

// begin notes that a call begins. What get shows may be a moment behind: it is recorded when it is known.
func (c *typed) begin(op history.Operation) {
	c.open = &traffic.Call{Number: int(c.made.Add(1)), Operation: op}
	if c.request.Named {
		c.open.Request = fmt.Sprint("typed-", c.open.Number)
	}
	if op.Verb != history.Get {
		c.calls.Hear(c.open)
	}
}

// end notes how the call under way has ended.
func (c *typed) end(answer history.Answer) {
	if c.open.Answer = answer; answer != history.Unknown {
		c.open.Return = history.Now() - c.begun
	}
	if answer == history.OK {
		c.answered.Add(1)
	}
	c.calls.Hear(c.open)
	c.open = nil
}

// waits reports whether a submit waits for the outcome.
func (c *typed) waits() bool { return c.request.Delay == 0 && c.request.Params.Millis%3 == 0 }

// args returns the arguments of the program.
func (c *typed) args() []string { return c.with(CommandWithin, c.words()...) }

// words returns the arguments that say what is asked.
func (c *typed) words() []string {
	q := c.request
	args := []string{string(q.Verb), q.Task}
	switch q.Verb {
	case history.Pause:
		args = []string{"pause", q.Behavior, "--reason", q.Reason, "--force"}
	case history.Unpause:
		args = []string{"unpause", q.Behavior}
	case history.Submit:
		behavior := "once"
		if q.Again {
			behavior = "again"
		}
		params, _ := json.Marshal(q.Params) // numbers and a text
		args = []string{"submit", behavior, string(params), "--id", q.Task}
		if q.Delay > 0 {
			args = append(args, "--delay", q.Delay.String())
		}
		if c.open != nil && c.open.Request != "" {
			args = append(args, "--key", c.open.Request)
		}
		if c.waits() {
			args = append(args, "--wait")
		}
	}
	return args
}

// with adds to a command what all have; serve has no time-out.
func (t *Terminal) with(timeout time.Duration, args ...string) []string {
	if args[0] != "serve" {
		args = append(args, "--timeout", timeout.String())
	}
	return append(args, "-o", "json", "--log-level", "warn", "--etcd", strings.Join(t.endpoints(), ","), "--nats", t.natsURL())
}

// SetPaused types the command that pauses a behavior, or that ends its pause, and records it.
func (t *Terminal) SetPaused(ctx context.Context, on bool, behavior, reason string) error {
	q := traffic.Request{Verb: history.Unpause, Behavior: behavior}
	if on {
		q = traffic.Request{Verb: history.Pause, Behavior: behavior, Reason: reason}
	}
	c := &typed{Terminal: t, request: q}
	c.begin(q.Operation(0, t.begun)) // who types the traffic has other numbers
	err := t.Operate(ctx, c.words()...)
	answer := history.OK
	if err != nil {
		answer = history.Unknown
	}
	c.end(answer)
	return err
}

// Operate types a command that is no part of the traffic. The error holds what it said.
func (t *Terminal) Operate(ctx context.Context, args ...string) error {
	_, err := t.Output(ctx, args...)
	return err
}

// Output is operate for a command whose output is of interest.
func (t *Terminal) Output(ctx context.Context, args ...string) (string, error) {
	var said bytes.Buffer
	cmd := exec.CommandContext(ctx, t.program, t.with(operateWithin, args...)...)
	cmd.Stderr = &said
	out, err := cmd.Output()
	t.noteLeft(said.String())
	if err != nil {
		err = fmt.Errorf("taskledger %s: %w: %s", strings.Join(args, " "), err, said.String())
	}
	return string(out), err
}

// mailStays is the message of a command that could not remove the mail of a sender.
var mailStays = regexp.MustCompile(`"mail stays until it is swept" sender=(\S+)`)

// noteLeft takes what a command has logged.
func (t *Terminal) noteLeft(said string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, m := range mailStays.FindAllStringSubmatch(said, -1) {
		t.Left = append(t.Left, m[1])
	}
}

// start runs the program until it ends, and hears what it prints.
func (c *typed) start(ctx context.Context) error {
	cmd := exec.CommandContext(ctx, c.program, c.args()...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = endsWithin
	cmd.Stderr = &c.said
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // an interrupt at the driver's terminal is not for it
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return err
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		var r reply
		if json.Unmarshal(lines.Bytes(), &r) == nil {
			c.hear(r)
		}
	}
	if err = cmd.Wait(); errors.Is(err, context.Canceled) && cmd.ProcessState.Success() { // it was done when it was interrupted
		return nil
	}
	return err
}

// hear takes a line of output. The first one of a submit comes as soon as it is durable.
func (c *typed) hear(r reply) {
	c.told = append(c.told, r)
	if c.request.Verb != history.Submit || len(c.told) > 1 {
		return
	}
	client, request := c.open.Client, c.open.Request
	c.open.Joined = r.Joined
	c.end(history.OK)
	if c.waits() {
		c.begin(traffic.Request{Verb: history.Wait, Task: c.request.Task}.Operation(terminals+client, c.begun))
		c.open.Request = request
	}
}

// What the program ends with.
const (
	codeDone        = 0
	codeFailed      = 1
	codeInvalid     = 2
	codeNotFound    = 3
	codeUnavailable = 4
	codeRefused     = 5
	codeNotKept     = 6
	codeInterrupted = 130
)

// answers maps exit codes to answers. The outcome of a command that the cluster did not answer in time is unknown.
var answers = map[int]history.Answer{codeDone: history.OK, codeNotFound: history.Absent, codeUnavailable: history.Unknown, codeRefused: history.Refused,
	codeNotKept: history.Absent, codeInterrupted: history.Unknown}

// refusedByClock is the error of a command that an owner refuses because its clock is far from the caller's.
const refusedByClock = ": clock: asked at "

// settle records what a command has told when it has ended.
func (c *typed) settle(code int) (broken string) {
	answer, known := answers[code]
	if c.open != nil && code == codeInvalid && strings.Contains(c.said.String(), refusedByClock) {
		answer, known = history.Refused, true
		c.mu.Lock()
		c.untimely = append(c.untimely, untimely{c.open.Call, history.Now() - c.begun, c.said.String()})
		c.mu.Unlock()
	}
	switch {
	case c.open == nil: // a submit, which was acknowledged
		if !known {
			broken = fmt.Sprintf("exit code %d after the submit was acknowledged", code)
		}
	case c.open.Verb == history.Wait:
		return c.outcome(code, answer)
	case c.open.Verb == history.Get:
		return c.read(code, answer)
	case !known, answer == history.OK && c.open.Verb == history.Submit:
		c.end(history.Unknown)
		broken = fmt.Sprintf("exit code %d, %d lines of output", code, len(c.told))
	default:
		c.end(answer)
	}
	return broken
}

// outcome records how a wait has ended. One that was interrupted, or told nothing in time, learned nothing.
func (c *typed) outcome(code int, answer history.Answer) (broken string) {
	var last reply
	if len(c.told) > 0 {
		last = c.told[len(c.told)-1]
	}
	switch {
	case code == codeDone && last.Status == "SUCCESS":
		c.open.Outcome = "=" + string(last.Result)
	case code == codeFailed && last.Error != nil:
		c.open.Outcome, answer = "!"+last.Error.Code, history.OK
	case answer == history.OK || answer == "":
		answer, broken = history.Unknown, fmt.Sprintf("exit code %d, %d lines of output", code, len(c.told))
	case answer == history.Refused:
		answer = history.Unknown
	}
	c.end(answer)
	return broken
}

// read records an outcome that get has shown, as if it had been waited for: what get shows may be a moment behind, but
// an outcome that a run had stays one.
func (c *typed) read(code int, answer history.Answer) (broken string) {
	op := c.open
	op.Verb = history.Wait
	switch {
	case answer == history.OK && len(c.told) == 1:
		switch r := c.told[0]; {
		case r.Status == "SUCCESS":
			op.Outcome = "=" + string(r.Result)
		case r.Status == "FAILURE" && r.Starts == nil && r.Error != nil:
			op.Outcome = "!" + r.Error.Code
		default:
			c.answered.Add(1)
			return "" // it has not ended, which nothing is compared with
		}
	case answer == history.Absent:
	case answer == history.OK || answer == "":
		return fmt.Sprintf("exit code %d, %d lines of output", code, len(c.told))
	default:
		return ""
	}
	c.calls.Hear(&traffic.Call{Number: op.Number, Operation: op.Operation})
	c.end(answer)
	return ""
}
