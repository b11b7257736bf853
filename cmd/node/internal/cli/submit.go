package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"taskledger/api/operations"
	"taskledger/behaviors/builtin"
	"taskledger/cmd/node/internal/exitcode"
	"taskledger/cmd/node/internal/flags"
	"taskledger/cmd/node/internal/input"
	"taskledger/cmd/node/internal/requests"
	"taskledger/cmd/node/internal/suggest"
	"taskledger/events"
	"taskledger/task"
)

// submitOptions are the flags of submit.
type submitOptions struct {
	id, key, at string
	delay       time.Duration
	priority    int64
	wait        bool
	batch       string
	skipBad     bool
	fromLine    int // of batch; 0 = the first one

	maxAttempts    int
	attemptTimeout time.Duration
	retain         time.Duration
	tags           []string
	deadline       string
}

const submitHelp = `Submit asks for work by the name of its behavior, which some node must run. Parameters are JSON:
the argument itself, a file after an @, or standard input for -. The id of the task is printed as soon as the request
is durable. With --wait the result follows, and the exit code tells whether the task succeeded.

With --batch each line of a file is a request, such as {"behavior":"sleep","params":{"duration":"1s"}}, with the
other flags of a submit as members: tags is a list, and names have _ for -. They are submitted in parts of 1,000, and
for each line the task is printed, or what is wrong with it. If a line cannot be meant none is submitted, unless --skip-bad leaves it out; what
the cluster refuses, such as the id of a task of another behavior, it refuses for that line alone. A batch that ends
early says with which --from-line it goes on. A file has 64 MiB at most. To a node whose store is in files more than 4
MiB travel in parts, one after the other: a line of a later part that cannot be meant keeps those of its part and the
next ones from being submitted, and more than 4 MiB under one key are refused.

--key is then a key of exactly these lines together, without those that --skip-bad leaves out, and no line has a key
of its own. Tasks that have no other name are HASH/0, HASH/1 and so on. A batch and a single submit share the keys of
a principal and a behavior.

A submit of a task that exists joins it, and says so; if it waits for its time, the earlier of both times holds.`

func (a *app) submitCommand() *cobra.Command {
	var o submitOptions
	c := &cobra.Command{
		Use:   "submit BEHAVIOR [JSON|@FILE|-]",
		Short: "Ask for work; prints the task's id once the request is durable",
		Long:  submitHelp,
		Args: func(cmd *cobra.Command, args []string) error {
			if o.batch != "" {
				if len(args) > 0 {
					return fmt.Errorf("--batch: its lines name the behaviors, and there is %q beside it", args)
				}
				return nil
			}
			return flags.Arguments(cmd, args)
		},
		ValidArgsFunction: a.completeBehaviors,
	}
	o.flags(c)
	a.completeFlag(c, "tag", a.completeOf(suggest.Tags))
	var params []byte
	var lines []requests.Line
	a.clientCommand(c, func() bool { return o.wait || o.batch != "" }, func(ctx context.Context, client operations.Client, args []string) error {
		if o.wait {
			defer a.tellNoNode(ctx, client)()
		}
		if o.batch != "" {
			return a.submitBatch(ctx, client, o, lines)
		}
		return orKnown(ctx, client, args[0], a.submit(ctx, client, o, args[0], params))
	})
	submit := c.RunE
	c.RunE = func(cmd *cobra.Command, args []string) (err error) {
		switch {
		case o.skipBad && o.batch == "":
			return &exitcode.UsageError{Problem: "--skip-bad: it is about --batch"}
		case o.fromLine != 0 && (o.batch == "" || o.key != ""):
			return &exitcode.UsageError{Problem: "--from-line: it is about --batch without --key, whose requests are one"}
		case o.fromLine < 0, o.fromLine == 0 && cmd.Flags().Changed("from-line"):
			return &exitcode.UsageError{Problem: fmt.Sprintf("--from-line %d: want 1 or more: lines count from 1", o.fromLine)}
		}
		if o.batch != "" {
			if lines, err = a.readBatch(cmd.Context(), o); err != nil {
				return err
			}
		}
		if len(args) > 1 { // first: a person may type them, for longer than a cluster may take to answer
			if params, err = a.params(cmd.Context(), args[0], args[1]); err != nil {
				return err
			}
		}
		return submit(cmd, args)
	}
	return c
}

// flags declares the flags of a submit.
func (o *submitOptions) flags(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&o.id, "id", "", "id of the task, `affinity/name` or name; submits of one id meet (default: the behavior's rule, or random)")
	f.StringVar(&o.key, "key", "",
		"`text` of up to 239 bytes that makes a repeated submit the same request, and names the task where\n"+
			"neither --id nor the behavior's rule does")
	f.DurationVar(&o.delay, "delay", 0, "time until it may start, up to ten years")
	f.StringVar(&o.at, "at", "", "`time` from when on it may start, such as 2026-11-21T18:00:00Z, or 10m: from now on")
	f.Int64Var(&o.priority, "priority", 0, "higher starts first within the shards of a node, 0 to 9223371 (default: the behavior's)")
	f.IntVar(&o.maxAttempts, "max-attempts", 0,
		"failed attempts until the task has failed for good, up to 1000000 (default: the behavior's)")
	f.DurationVar(&o.attemptTimeout, "attempt-timeout", 0,
		"longest time of an attempt, up to ten years (default: the behavior's)")
	f.DurationVar(&o.retain, "retain", 0,
		"time for which the task is kept after SUCCESS, up to ten years (default: the behavior's)")
	f.StringArrayVar(&o.tags, "tag", nil,
		"a `tag` by which lists find the task: 1 to 64 letters, digits and . _ - : / = + @; up to 10 of them")
	f.StringVar(&o.deadline, "deadline", "",
		"`time` at which the run fails unless it has ended, such as 2026-11-21T18:00:00Z, or 10m: from now on;\n"+
			"a request of one --key is repeated with the same time")
	f.BoolVar(&o.wait, "wait", false, "wait for the outcome and print the result")
	f.StringVar(&o.batch, "batch", "", "submit the requests of a `file`, one on each line; - is standard input")
	f.IntVar(&o.fromLine, "from-line", 0,
		"with --batch, the `number` of the first line to submit, as a batch that ended early told")
	f.BoolVar(&o.skipBad, "skip-bad", false, "with --batch, leave out lines that are wrong, and submit the others")
	c.MarkFlagsMutuallyExclusive("delay", "at")
	for _, one := range []string{"id", "delay", "at", "priority", "max-attempts", "attempt-timeout", "retain", "tag", "deadline"} {
		c.MarkFlagsMutuallyExclusive("batch", one)
	}
}

// over says of a task that it has ended, so that nothing runs for a request that has joined it; "" = it has not.
func (a *app) over(ctx context.Context, client getter, id events.TaskID) string {
	t, err := client.Get(ctx, id)
	if err != nil || !t.Final() {
		return ""
	}
	text := fmt.Sprintf("; it has ended with %s, and nothing runs", t.Status)
	if t.Status == task.Failure {
		text += fmt.Sprintf(": %s runs it again", a.command(append([]string{"retry", string(id)}, a.access.given("data")...)...))
	}
	return text
}

// submitter submits tasks and tells of them.
type submitter interface {
	operations.Submitter
	getter
}

// orKnown adds to the error of a behavior that no node runs which one may be meant, or which ones there are.
func orKnown(ctx context.Context, client operations.Observer, behavior string, err error) error {
	if !errors.Is(err, task.ErrUnknownBehavior) {
		return err
	}
	names := suggest.Behaviors(ctx, client)
	if meant := suggest.Question(suggest.Near(behavior, names)); meant != "" {
		return fmt.Errorf("%w%s", err, meant)
	}
	if len(names) == 0 {
		return err
	}
	return fmt.Errorf("%w; nodes run %s", err, strings.Join(names, ", "))
}

func (a *app) submit(ctx context.Context, client submitter, o submitOptions, behavior string, params []byte) error {
	options, err := o.options(time.Now())
	if err != nil {
		return err
	}
	asked, stop := a.answering(ctx)
	defer stop()
	handle, err := client.SubmitRaw(asked, behavior, params, options)
	if err != nil {
		if errors.Is(err, task.ErrUnknown) && handle.ID() != "" {
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
	if err := errors.Join(p.Row(view, handle.ID()), p.Flush()); err != nil {
		return exitcode.Unprinted("accepted: "+string(handle.ID()), err)
	}
	switch {
	case p.IsJSON():
	case view.Repeated:
		fmt.Fprintf(a.Err, "%s: this request was submitted before, and changes nothing\n", a.Name)
	case view.Joined:
		stays := ""
		if len(params) > 0 {
			stays = "; the parameters of the task stay, unless its behavior combines them with these"
		}
		fmt.Fprintf(a.Err, "%s: there was such a task already: the request has joined it%s%s\n", a.Name, stays, a.over(asked, client, view.ID))
	}
	if !o.wait {
		return nil
	}
	defer a.tellFailures(ctx, client, handle.ID())()
	return a.await(ctx, handle)
}

func (o submitOptions) options(now time.Time) (task.SubmitOptions, error) {
	options := task.SubmitOptions{
		ID:          events.TaskID(o.id),
		Priority:    o.priority,
		RequestKey:  o.key,
		Delay:       o.delay,
		MaxAttempts: o.maxAttempts,
		Timeout:     o.attemptTimeout,
		Retain:      o.retain,
	}
	if err := o.check(); err != nil {
		return options, err
	}
	for _, given := range []struct {
		name, text string
		is         *time.Time
	}{{"--at", o.at, &options.NotBefore}, {"--deadline", o.deadline, &options.Deadline}} {
		if given.text == "" {
			continue
		}
		at, err := flags.Time(given.name, given.text, flags.FromNow)
		if err != nil {
			return options, err
		}
		if at.Sub(now) > events.MaxDelay {
			problem := fmt.Sprintf("%s %s: want ten years ahead at most", given.name, given.text)
			return options, &exitcode.UsageError{Problem: problem}
		}
		*given.is = at
	}
	var err error
	options.Tags, err = requests.Tags(o.tags)
	return options, err
}

// params reads the parameters of a task of a behavior from the argument that names or holds them.
func (a *app) params(ctx context.Context, behavior, arg string) (text []byte, err error) {
	switch file, isFile := strings.CutPrefix(arg, "@"); {
	case arg == "-":
		text, err = a.input(ctx, "parameters", "-", events.MaxPayloadBytes)
	case isFile:
		text, err = a.input(ctx, "parameters", file, events.MaxPayloadBytes)
	default:
		text = []byte(arg)
	}
	if err != nil {
		return nil, err
	}
	switch {
	case len(text) > events.MaxPayloadBytes: // of the argument itself
		return nil, &task.LimitError{Field: "parameters", Limit: events.MaxPayloadBytes, Got: int64(len(text))}
	}
	if err := checkJSON(text); err != nil {
		problem := "parameters: " + err.Error()
		if sample := builtin.Sample(behavior); sample != "" {
			problem += "; " + behavior + " takes such as " + sample
		}
		return nil, &exitcode.UsageError{Problem: problem}
	}
	return text, nil
}

// checkJSON says where a text is no JSON, and what is there. What begins like no string, list or object may lack
// quotes.
func checkJSON(text []byte) error {
	var value json.RawMessage
	wrong, is := errors.AsType[*json.SyntaxError](json.Unmarshal(text, &value))
	switch begins := bytes.TrimLeft(text, " \t\r\n"); {
	case !is:
		return nil
	case len(begins) == 0 || !strings.ContainsRune("\"[{", rune(begins[0])):
		return fmt.Errorf("%.40q is no JSON; a string needs its quotes", text)
	}
	return fmt.Errorf("byte %d: %w", wrong.Offset, wrong)
}

// input reads a file, or standard input for -, for --timeout at most.
func (a *app) input(ctx context.Context, what, file string, most int64) ([]byte, error) {
	if limit := a.access.timeout; limit > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeoutCause(ctx, limit, exitcode.ErrTimeout)
		defer stop()
	}
	return input.Read(ctx, what, file, a.In, most)
}

// check refuses what no submit can mean.
func (o *submitOptions) check() error {
	switch {
	case o.delay < 0:
		return &exitcode.UsageError{Problem: fmt.Sprintf("--delay %s: want 0 or more", o.delay)}
	case o.delay > events.MaxDelay:
		return &exitcode.UsageError{Problem: fmt.Sprintf("--delay %s: want ten years at most", o.delay)}
	case o.priority < 0 || o.priority > events.MaxPriority:
		return &exitcode.UsageError{Problem: fmt.Sprintf("--priority %d: want 0 to %d", o.priority, int64(events.MaxPriority))}
	case o.maxAttempts < 0 || o.maxAttempts > events.MaxPolicyCount:
		return &exitcode.UsageError{Problem: fmt.Sprintf("--max-attempts %d: want 1 to %d", o.maxAttempts, events.MaxPolicyCount)}
	case o.attemptTimeout < 0 || o.attemptTimeout > events.MaxDelay:
		return &exitcode.UsageError{Problem: fmt.Sprintf("--attempt-timeout %s: want ten years at most", o.attemptTimeout)}
	case o.retain < 0 || o.retain > events.MaxDelay:
		return &exitcode.UsageError{Problem: fmt.Sprintf("--retain %s: want ten years at most", o.retain)}
	}
	return nil
}
