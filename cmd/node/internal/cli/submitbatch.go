package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"taskledger/cmd/node/internal/exitcode"
	"taskledger/cmd/node/internal/operations"
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
	bounded, stop := context.WithTimeoutCause(ctx, answerWithin, exitcode.ErrTimeout)
	defer stop()
	results := client.SubmitMany(bounded, asked, task.ManyOptions{RequestKey: o.key, AllValid: !o.skipBad})
	p := a.print("LINE", "TASK", "PROBLEM")
	var wrong []error
	for i, r := range results {
		view := struct {
			Line     int           `json:"line"`
			ID       events.TaskID `json:"id,omitempty"`
			Joined   bool          `json:"joined"`
			Repeated bool          `json:"repeated"`
			Error    string        `json:"error,omitempty"`
		}{Line: lines[i].Number, ID: r.ID(), Joined: r.Joined(), Repeated: r.Repeated()}
		if r.Err != nil {
			view.Error = r.Err.Error()
			if !errors.Is(r.Err, task.ErrNoneSubmitted) {
				wrong = append(wrong, fmt.Errorf("line %d: %w", lines[i].Number, r.Err))
			}
		}
		if err := p.Row(view, view.Line, cmp.Or(view.ID, "-"), view.Error); err != nil {
			return err
		}
	}
	if err := p.Flush(); err != nil {
		return err
	}
	var errs []error
	for _, r := range results {
		if o.wait && r.Err == nil {
			errs = append(errs, a.await(ctx, r.Handle))
		}
	}
	if len(wrong) > 0 {
		errs = append(errs, &requests.Problems{Text: fmt.Sprintf("%d of %d requests are refused or not known", len(wrong), len(results)), Errs: wrong})
	}
	return errors.Join(errs...)
}
