package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"taskledger/api/operations"
	"taskledger/cmd/node/internal/exitcode"
	"taskledger/cmd/node/internal/requests"

	"taskledger/events"
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
	return requests.Read(text, o.key != "", skip)
}

// submitBatch submits the requests of a file, and prints what became of each.
func (a *app) submitBatch(ctx context.Context, client operations.Submitter, o submitOptions, lines []requests.Line) error {
	asked := make([]task.Request, len(lines))
	for i := range lines {
		asked[i] = lines[i].Request
	}
	bounded, stop := a.answering(ctx)
	defer stop()
	results := o.submitMany(bounded, client, asked)
	p := a.print("LINE", "TASK", "PROBLEM")
	none := noneSubmitted(lines, results)
	var wrong []error
	var unprinted error
	accepted, joined := "", 0
	for i, r := range results {
		view := struct {
			Line     int           `json:"line"`
			ID       events.TaskID `json:"id,omitempty"`
			Joined   bool          `json:"joined"`
			Repeated bool          `json:"repeated"`
			Error    string        `json:"error,omitempty"`
		}{Line: lines[i].Number, ID: r.ID(), Joined: r.Joined(), Repeated: r.Repeated()}
		switch {
		case errors.Is(r.Err, task.ErrNoneSubmitted):
			view.ID, view.Error = "", none
		case r.Err != nil:
			view.Error = r.Err.Error()
			wrong = append(wrong, fmt.Errorf("line %d: %w", lines[i].Number, r.Err))
			if requests.Refused(r.Err) {
				view.ID = lines[i].ID // which is there only if it was asked for
			}
		}
		if view.Joined {
			joined++
		}
		if r.Err == nil {
			accepted += " " + string(view.ID)
		}
		if unprinted == nil {
			unprinted = p.Row(view, view.Line, cmp.Or(view.ID, "-"), view.Error)
		}
	}
	if err := errors.Join(unprinted, p.Flush()); err != nil {
		return exitcode.Unprinted("accepted:"+cmp.Or(accepted, " none"), err)
	}
	if joined > 0 {
		fmt.Fprintf(a.Err, "%s: %d of %d tasks were there already\n", a.Name, joined, len(results))
	}
	var errs []error
	var made []operations.Handle
	for _, r := range results {
		if r.Err == nil {
			made = append(made, r.Handle)
		}
	}
	if o.wait {
		errs = append(errs, a.awaitAll(ctx, made))
	}
	if len(wrong) > 0 {
		text := fmt.Sprintf("%d of %d requests are refused or not known", len(wrong), len(results))
		if len(made) == 0 && len(wrong) < len(results) {
			text += ", and none is submitted"
		}
		errs = append(errs, &requests.Problems{Text: text, Errs: wrong})
	}
	return errors.Join(errs...)
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
