package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"taskledger/cmd/node/internal/exitcode"
	"taskledger/cmd/node/internal/operations"
	"taskledger/engine"
	"taskledger/events"
)

// submitOptions are the flags of submit.
type submitOptions struct {
	id, key, at string
	delay       time.Duration
	priority    int64
	wait        bool
}

func (a *app) submitCommand() *cobra.Command {
	var o submitOptions
	c := &cobra.Command{
		Use:   "submit BEHAVIOR [JSON|@FILE|-]",
		Short: "Ask for work; prints the task's id once the request is durable",
		Long: `Submit asks for work by the name of its behavior, which some node must run. Parameters are JSON: the argument itself, a
file after an @, or standard input for -. The id of the task is printed as soon as the request is durable. With --wait the
result follows, and the exit code tells whether the task succeeded.`,
		Args: arguments,
		Example: a.examples(
			example{"run a program that serve --exec-allow date allows", []string{"submit", "exec", `{"program":"date"}`, "--wait"}},
			example{"once, however often it is submitted", []string{"submit", "http", "@request.json", "--id", "report/2026-11", "--delay", "1h"}},
			example{"the same, without a name of its own", []string{"submit", "http", "@request.json", "--key", "order 4711"}}),
		ValidArgsFunction: a.completeBehaviors,
	}
	f := c.Flags()
	f.StringVar(&o.id, "id", "", "id of the task, `affinity/name` or name; submits of one id meet (default: the behavior's rule, or random)")
	f.StringVar(&o.key, "key", "", "makes a repeated submit the same request, and names the task where neither --id nor the behavior's rule does: `text` of up to 239 bytes")
	f.DurationVar(&o.delay, "delay", 0, "time until it may start")
	f.StringVar(&o.at, "at", "", "`time` from when on it may start, such as 2026-11-21T18:00:00Z")
	f.Int64Var(&o.priority, "priority", 0, "higher starts first within a shard, 0 to 9223371 (default: the behavior's)")
	f.BoolVar(&o.wait, "wait", false, "wait for the outcome and print the result")
	c.MarkFlagsMutuallyExclusive("delay", "at")
	var params []byte
	a.clientCommand(c, func() bool { return o.wait }, func(ctx context.Context, client operations.Client, args []string) error {
		return a.submit(ctx, client, o, args[0], params)
	})
	submit := c.RunE
	c.RunE = func(cmd *cobra.Command, args []string) (err error) {
		if len(args) > 1 { // first: a person may type them, for longer than a cluster may take to answer
			if params, err = a.params(cmd.Context(), args[1]); err != nil {
				return err
			}
		}
		return submit(cmd, args)
	}
	return c
}

func (a *app) submit(ctx context.Context, client operations.Submitter, o submitOptions, behavior string, params []byte) error {
	options, err := o.options(time.Now())
	if err != nil {
		return err
	}
	asked, stop := context.WithTimeoutCause(ctx, answerWithin, exitcode.ErrTimeout)
	defer stop()
	handle, err := client.SubmitRaw(asked, behavior, params, options)
	if err != nil {
		if errors.Is(err, engine.ErrUnknown) && handle.ID() != "" {
			again := "--id " + string(handle.ID())
			if o.key != "" {
				again = "the same --key"
			}
			err = fmt.Errorf("%w; to be sure, submit again with %s", err, again)
		}
		return err
	}
	p := a.print()
	view := struct {
		ID       events.TaskID `json:"id"`
		Joined   bool          `json:"joined"`
		Repeated bool          `json:"repeated"`
	}{handle.ID(), handle.Joined(), handle.Repeated()}
	if err := errors.Join(p.Row(view, handle.ID()), p.Flush()); err != nil || !o.wait {
		return err
	}
	return a.await(ctx, handle)
}

func (o submitOptions) options(now time.Time) (engine.SubmitOptions, error) {
	options := engine.SubmitOptions{ID: events.TaskID(o.id), Priority: o.priority, RequestKey: o.key, Delay: o.delay}
	if err := o.check(); err != nil {
		return options, err
	}
	if o.at != "" {
		at, err := time.Parse(time.RFC3339, o.at)
		if err != nil {
			return options, &exitcode.UsageError{Problem: fmt.Sprintf("--at %s: want a time such as %s", o.at, now.UTC().Format(time.RFC3339))}
		}
		options.NotBefore = at
	}
	return options, nil
}

// params reads what the second argument stands for.
func (a *app) params(ctx context.Context, arg string) (text []byte, err error) {
	if limit := a.access.timeout; limit > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeoutCause(ctx, limit, exitcode.ErrTimeout)
		defer stop()
	}
	switch file, isFile := strings.CutPrefix(arg, "@"); {
	case arg == "-":
		text, err = readParams(ctx, func() (io.ReadCloser, error) { return io.NopCloser(a.In), nil })
	case isFile:
		text, err = readParams(ctx, func() (io.ReadCloser, error) { return os.Open(file) })
	default:
		text = []byte(arg)
	}
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, fmt.Errorf("read parameters: %w", err)
	case err != nil:
		return nil, &exitcode.UsageError{Problem: fmt.Sprintf("read parameters: %v", err)}
	}
	if len(text) <= events.MaxPayloadBytes && !json.Valid(text) {
		return nil, &exitcode.UsageError{Problem: fmt.Sprintf("parameters: %.40q is no JSON; a string needs its quotes", text)}
	}
	return text, nil
}

// readParams reads one byte more than fits, so that the engine refuses what is too large. Nothing ends a read of a terminal or a pipe, or
// the wait for somebody to write into one, so it is left behind when ctx ends: the program is about to end, too.
func readParams(ctx context.Context, open func() (io.ReadCloser, error)) ([]byte, error) {
	type read struct {
		text []byte
		err  error
	}
	done := make(chan read, 1)
	go func() {
		from, err := open()
		if err != nil {
			done <- read{nil, err}
			return
		}
		defer from.Close()
		text, err := io.ReadAll(io.LimitReader(from, events.MaxPayloadBytes+1))
		done <- read{text, err}
	}()
	select {
	case r := <-done:
		return r.text, r.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// check refuses what no submit can mean.
func (o *submitOptions) check() error {
	switch {
	case o.delay < 0:
		return &exitcode.UsageError{Problem: fmt.Sprintf("--delay %s: want 0 or more", o.delay)}
	case o.priority < 0 || o.priority > events.MaxPriority:
		return &exitcode.UsageError{Problem: fmt.Sprintf("--priority %d: want 0 to %d", o.priority, int64(events.MaxPriority))}
	}
	return nil
}
