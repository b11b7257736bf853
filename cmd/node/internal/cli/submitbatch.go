package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"taskledger/api/operations"
	"taskledger/cmd/node/internal/exitcode"
	"taskledger/cmd/node/internal/output"
	"taskledger/cmd/node/internal/progress"
	"taskledger/cmd/node/internal/requests"
	"taskledger/events"
	"taskledger/store"
	"taskledger/task"
)

// readBatch reads the file of requests.
func (a *app) readBatch(ctx context.Context, o submitOptions) ([]requests.Line, error) {
	text, err := a.input(ctx, "--batch", o.batch, requests.MaxBytes)
	if err != nil {
		return nil, err
	}
	var skip func(int, error)
	if o.skipBad {
		skip = func(line int, err error) { fmt.Fprintf(a.Err, "%s: line %d is left out: %v\n", a.Name, line, err) }
	}
	lines, err := requests.Read(text, o.key != "", skip)
	if err != nil {
		return nil, err
	}
	first := slices.IndexFunc(lines, func(l requests.Line) bool { return l.Number >= o.fromLine })
	if first < 0 {
		problem := fmt.Sprintf("--from-line %d: the last request is on line %d", o.fromLine, lines[len(lines)-1].Number)
		return nil, &exitcode.UsageError{Problem: problem}
	}
	return lines[first:], nil
}

// batch submits the requests of a file in parts, one after the other, and prints what became of each.
type batch struct {
	*app
	submitOptions
	client operations.Submitter
	rows   *output.Printer
	bar    *progress.Bar
	total  int  // requests that are to be submitted
	silent bool // it was said that an answer is waited for

	asked, accepted, joined int
	wrong                   requests.Problems // errors of requests
	open                    error             // why the cluster has not decided the first of some requests
	firstOpen               int               // its line; 0 = all are decided
	mixed                   bool              // requests on later lines of its part are submitted, or may be
	vain                    string            // says of which lines nothing is submitted for the sake of one; "" = of none
}

// submitBatch submits the requests of a file. Those of one key are one part. While the cluster does not answer for some
// it waits, once it has answered for others.
func (a *app) submitBatch(ctx context.Context, client operations.Submitter, o submitOptions, lines []requests.Line) error {
	b := batch{
		app:           a,
		submitOptions: o,
		client:        client,
		rows:          a.print("LINE", "TASK", "PROBLEM"),
		bar:           progress.NewBar(a.Err, "requests"),
		total:         len(lines),
	}
	defer b.bar.Done()
	var waited []error
	for len(lines) > 0 {
		part := lines[:min(events.MaxRequestTasks, len(lines))]
		behind := lines[len(part):]
		made, err := b.submit(ctx, part)
		if err != nil {
			return errors.Join(err, rest(behind))
		}
		if o.wait {
			waited = append(waited, a.awaitAll(ctx, made))
		}
		if b.firstOpen > 0 || ctx.Err() != nil && len(behind) > 0 {
			waited = append([]error{b.ended(ctx, part, behind)}, waited...)
			break
		}
		if len(b.wrong.Errs) > 0 && !o.skipBad {
			if len(made) > 0 || !allRefused(b.wrong.Errs) {
				lines = behind
			} else if b.accepted > 0 {
				b.vain = fmt.Sprintf(", and nothing is submitted of lines %d to %d", part[0].Number, part[len(part)-1].Number)
			}
			if len(behind) > 0 || b.accepted > 0 {
				waited = append(waited, rest(lines))
			}
			break
		}
		lines = behind
	}
	if b.joined > 0 {
		fmt.Fprintf(a.Err, "%s: %d of %d tasks were there already\n", a.Name, b.joined, b.asked)
	}
	return b.problems(waited)
}

// problems returns the errors of a batch as one.
func (b *batch) problems(others []error) error {
	if len(b.wrong.Errs) == 0 {
		return errors.Join(others...)
	}
	wrong := len(b.wrong.Errs) + b.wrong.More
	b.wrong.Text = fmt.Sprintf("%d of %d requests are refused", wrong, b.asked)
	if b.accepted == 0 && wrong < b.asked {
		b.wrong.Text += ", and none is submitted"
	}
	b.wrong.Text += b.vain
	if b.accepted > 0 && b.vain == "" {
		b.wrong.Text += ", and have to be submitted again"
	}
	return errors.Join(append(others, &b.wrong)...)
}

// ended says how far a batch came that ended before the cluster had answered for all, and where it goes on.
func (b *batch) ended(ctx context.Context, part, behind []requests.Line) error {
	cause := cmp.Or(context.Cause(ctx), b.open)
	if errors.Is(cause, exitcode.ErrNoOutcome) { // of the submits, whose outcomes may not be waited for
		cause = exitcode.ErrTimeout
	}
	if b.accepted == 0 && !b.mixed {
		return fmt.Errorf("none of %d requests is submitted: %w", b.total, cause)
	}
	args := []string{"submit", "--batch", b.batch, "--key", b.key}
	if b.key == "" {
		next := b.firstOpen
		if next == 0 {
			next = behind[0].Number
		}
		args = append(args[:3], "--from-line", strconv.Itoa(next))
	}
	if b.skipBad {
		args = append(args, "--skip-bad")
	}
	const say = "%d of %d requests are submitted; go on with: %s"
	text := fmt.Sprintf(say, b.accepted, b.total, b.command(append(args, b.access.given("data")...)...))
	if b.mixed && b.key == "" {
		const say = "; up to line %d some may be there already, and those without id and key would run twice"
		text += fmt.Sprintf(say, part[len(part)-1].Number)
	}
	return &pausedError{text, cause}
}

// rest says where a batch goes on that has ended early.
func rest(left []requests.Line) error {
	if len(left) == 0 {
		return nil
	}
	return fmt.Errorf("nothing is submitted from line %d on: go on with --from-line %d", left[0].Number, left[0].Number)
}

// allRefused reports whether for certain nothing was submitted of what has an error.
func allRefused(errs []error) bool {
	return !slices.ContainsFunc(errs, func(err error) bool { return !requests.Refused(err) })
}

// undecided reports whether an error tells that the cluster does not answer, or has no room by now.
func undecided(err error) bool {
	_, full := errors.AsType[*task.OverloadError](err)
	return full || errors.Is(err, store.ErrUnavailable) || unknown(err)
}

// unknown reports whether a request may have been submitted all the same.
func unknown(err error) bool { return errors.Is(err, task.ErrUnknown) }

// submit submits a part, and returns the handles of what is accepted.
func (b *batch) submit(ctx context.Context, part []requests.Line) (made []operations.Handle, err error) {
	results, resent := b.settle(ctx, part)
	none := noneSubmitted(part, results)
	var unprinted error
	accepted := ""
	for i, r := range results {
		view := struct {
			Line     int           `json:"line"`
			ID       events.TaskID `json:"id,omitempty"`
			Joined   bool          `json:"joined"`
			Repeated bool          `json:"repeated"`
			Error    string        `json:"error,omitempty"`
		}{Line: part[i].Number, ID: r.ID(), Joined: r.Joined(), Repeated: r.Repeated()}
		switch {
		case errors.Is(r.Err, task.ErrNoneSubmitted):
			view.ID, view.Error = "", none
		case r.Err != nil:
			view.Error = r.Err.Error()
			if requests.Refused(r.Err) {
				view.ID = part[i].ID // which is there only if it was asked for
			}
		default:
			made = append(made, r.Handle)
			accepted += " " + string(view.ID)
		}
		b.count(part[i].Number, r.Err)
		if view.Joined && !resent[i] {
			b.joined++
		}
		if unprinted == nil {
			unprinted = b.rows.Row(view, view.Line, cmp.Or(view.ID, "-"), view.Error)
		}
	}
	b.asked, b.accepted = b.asked+len(part), b.accepted+len(made)
	b.bar.Done()
	if err := errors.Join(unprinted, b.rows.Flush()); err != nil {
		return nil, exitcode.Unprinted("accepted:"+cmp.Or(accepted, " none"), err)
	}
	b.bar.Show(int64(b.asked), int64(b.total), "")
	return made, nil
}

// count notes the error of a line, if there is one.
func (b *batch) count(line int, err error) {
	switch {
	case err == nil:
		b.mixed = b.mixed || b.firstOpen > 0
	case undecided(err): // also of those that are not submitted since another one is not decided
		b.mixed = b.mixed || unknown(err)
		if b.firstOpen == 0 {
			b.firstOpen, b.open = line, err
		}
	case !errors.Is(err, task.ErrNoneSubmitted):
		b.wrong.Add(fmt.Errorf("line %d: %w", line, err))
	}
}

const (
	// shortestPause is the first pause before what is not decided is submitted again; each is twice as long as the one
	// before, up to longestPause.
	shortestPause = 500 * time.Millisecond
	longestPause  = 5 * time.Second
	// lastAnswers bounds the wait for answers after an interrupt: what they tell need not be found out later.
	lastAnswers = 3 * time.Second
)

// settle submits a part, and again what the cluster has not decided, until it has or ctx ends. It does not begin to
// wait before the cluster has answered. resent tells of which requests others than this may say that they are there.
func (b *batch) settle(ctx context.Context, part []requests.Line) (all []operations.Submitted, resent []bool) {
	asked := make([]task.Request, len(part))
	for i := range part {
		asked[i] = part[i].Request
	}
	resent = make([]bool, len(part))
	all = b.ask(ctx, asked)
	for pause := shortestPause; ; pause = min(2*pause, longestPause) {
		var open []int
		begun := b.accepted > 0
		for i, r := range all {
			if begun = begun || r.Err == nil || unknown(r.Err); undecided(r.Err) {
				open = append(open, i)
			}
		}
		if len(open) == 0 || !begun || ctx.Err() != nil {
			return all, resent
		}
		b.tellSilence(": " + output.Clean(events.Head(all[open[0]].Err.Error(), toldOfFailure)))
		if sleep(ctx, pause); ctx.Err() != nil {
			return all, resent
		}
		if b.key != "" { // all are one request
			all = b.ask(ctx, asked)
			continue
		}
		again := make([]task.Request, len(open))
		for i, at := range open {
			if q := &asked[at]; unknown(all[at].Err) {
				resent[at] = true
				if q.ID == "" && q.RequestKey == "" { // under any other id it could be there twice
					q.ID = all[at].ID()
				}
			}
			again[i] = asked[at]
		}
		for i, r := range b.ask(ctx, again) {
			all[open[i]] = r
		}
	}
}

// ask submits requests once, and says when the answer takes long. After an interrupt it waits a moment more.
func (b *batch) ask(ctx context.Context, asked []task.Request) []operations.Submitted {
	bounded, stop := b.answering(context.WithoutCancel(ctx))
	defer stop()
	defer context.AfterFunc(ctx, func() {
		if errors.Is(context.Cause(ctx), context.Canceled) {
			time.AfterFunc(lastAnswers, stop)
		} else {
			stop()
		}
	})()
	said := make(chan struct{})
	silence := time.AfterFunc(tellNoNodeAfter, func() {
		b.tellSilence("")
		close(said)
	})
	results := b.submitMany(bounded, b.client, asked)
	if !silence.Stop() {
		<-said
	}
	if !slices.ContainsFunc(results, func(r operations.Submitted) bool { return undecided(r.Err) }) {
		b.silent = false
	}
	return results
}

// tellSilence says once, until the cluster answers, that its answer is waited for.
func (b *batch) tellSilence(why string) {
	if b.silent {
		return
	}
	b.silent = true
	b.bar.Done()
	const say = "%s: waiting for the cluster, with %d of %d requests submitted%s\n"
	fmt.Fprintf(b.Err, say, b.Name, b.accepted, b.total, why)
}

// noneSubmitted says why nothing is submitted, and names the line of the request that is to blame: others do not know
// the lines.
func noneSubmitted(lines []requests.Line, results []operations.Submitted) string {
	for i, r := range results {
		if r.Err != nil && !errors.Is(r.Err, task.ErrNoneSubmitted) {
			return fmt.Sprintf("%v: line %d: %v", task.ErrNoneSubmitted, lines[i].Number, r.Err)
		}
	}
	return task.ErrNoneSubmitted.Error()
}

// submitMany submits the requests. Those of one key are submitted together or not at all: with --skip-bad, without the
// wrong ones.
func (o submitOptions) submitMany(ctx context.Context, client operations.Submitter, asked []task.Request) []operations.Submitted {
	results := client.SubmitMany(ctx, asked, task.ManyOptions{RequestKey: o.key, AllValid: !o.skipBad})
	if !o.skipBad || o.key == "" {
		return results
	}
	var left []task.Request
	var at []int
	for i, r := range results {
		switch {
		case errors.Is(r.Err, task.ErrNoneSubmitted):
			left, at = append(left, asked[i]), append(at, i)
		case exitcode.Of(r.Err) != exitcode.Usage && !errors.Is(r.Err, task.ErrUnknownBehavior):
			return results // it is submitted, or may be the next time
		}
	}
	if len(left) == 0 || len(left) == len(asked) {
		return results
	}
	for i, r := range o.submitMany(ctx, client, left) {
		results[at[i]] = r
	}
	return results
}
