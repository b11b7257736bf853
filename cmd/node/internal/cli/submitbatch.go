package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

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

	asked, accepted, joined int
	wrong                   requests.Problems // errors of requests
	vain                    string            // says of which lines nothing is submitted for the sake of one; "" = of none
}

// submitBatch submits the requests of a file. Those of one key are one part.
func (a *app) submitBatch(ctx context.Context, client operations.Submitter, o submitOptions, lines []requests.Line) error {
	b := batch{
		app:           a,
		submitOptions: o,
		client:        client,
		rows:          a.print("LINE", "TASK", "PROBLEM"),
	}
	bar := progress.NewBar(a.Err, "requests")
	defer bar.Done()
	var waited []error
	for len(lines) > 0 {
		part := lines[:min(events.MaxRequestTasks, len(lines))]
		behind := lines[len(part):]
		made, err := b.submit(ctx, part)
		if err != nil {
			return errors.Join(err, rest(behind))
		}
		if len(behind) > 0 {
			bar.Show(int64(b.asked), int64(b.asked+len(behind)), "")
		}
		if o.wait {
			waited = append(waited, a.awaitAll(ctx, made))
		}
		if len(b.wrong.Errs) > 0 && !o.skipBad || unreached(b.wrong.Errs) || ctx.Err() != nil {
			if len(made) > 0 || o.skipBad || !allRefused(b.wrong.Errs) {
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
	if len(b.wrong.Errs) == 0 {
		return errors.Join(waited...)
	}
	wrong := len(b.wrong.Errs) + b.wrong.More
	b.wrong.Text = fmt.Sprintf("%d of %d requests are refused or not known", wrong, b.asked)
	if b.accepted == 0 && wrong < b.asked {
		b.wrong.Text += ", and none is submitted"
	}
	b.wrong.Text += b.vain
	if b.accepted > 0 && b.vain == "" {
		b.wrong.Text += ", and have to be submitted again"
	}
	return errors.Join(append(waited, &b.wrong)...)
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

// unreached reports whether errors tell that the cluster does not answer, or has no room: what follows would fail alike.
func unreached(errs []error) bool {
	return slices.ContainsFunc(errs, func(err error) bool {
		_, full := errors.AsType[*task.OverloadError](err)
		return full || errors.Is(err, store.ErrUnavailable) || errors.Is(err, task.ErrUnknown)
	})
}

// submit submits a part, and returns the handles of what is accepted.
func (b *batch) submit(ctx context.Context, part []requests.Line) (made []operations.Handle, err error) {
	asked := make([]task.Request, len(part))
	for i := range part {
		asked[i] = part[i].Request
	}
	bounded, stop := b.answering(ctx)
	defer stop()
	results := b.submitMany(bounded, b.client, asked)
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
			b.wrong.Add(fmt.Errorf("line %d: %w", part[i].Number, r.Err))
			if requests.Refused(r.Err) {
				view.ID = part[i].ID // which is there only if it was asked for
			}
		default:
			made = append(made, r.Handle)
			accepted += " " + string(view.ID)
		}
		if view.Joined {
			b.joined++
		}
		if unprinted == nil {
			unprinted = b.rows.Row(view, view.Line, cmp.Or(view.ID, "-"), view.Error)
		}
	}
	b.asked, b.accepted = b.asked+len(part), b.accepted+len(made)
	if err := errors.Join(unprinted, b.rows.Flush()); err != nil {
		return nil, exitcode.Unprinted("accepted:"+cmp.Or(accepted, " none"), err)
	}
	return made, nil
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
