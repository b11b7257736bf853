package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"taskledger/api"
)

// Order says what a job does.
type Order struct {
	api.ChangeMatching
	Counted *int64 // tasks that have matched when somebody counted them; nil = nobody has
	Key     string // makes a repetition the same order; "" = each call is an order of its own
}

// State says how far a job is.
type State uint8

// The states.
const (
	Runs     State = iota
	Done           // all that matched was looked at
	Stopped        // by its principal
	Failed         // Why tells
	NodeEnds       // its node has ended it
)

// String names the state in words.
func (s State) String() string {
	return [...]string{"runs", "is done", "was stopped", "has failed", "ended with its node"}[s]
}

// Job shows a job at a time.
type Job struct {
	ID           string
	Order        Order
	State        State
	Stopping     bool             // somebody has stopped it, and it still runs
	Began, Ended time.Time        // Ended is zero while it runs
	Report       api.ChangeReport // of the tasks so far
	Why          string           // why it ended before all was done; "" = it did not
}

// GoesOn returns the order that does what is left of a job that has ended before all was done, and tells where from;
// false = nothing is left, or nothing tells where. A repetition of it is the same order.
func (j *Job) GoesOn() (Order, bool) {
	if j.State == Runs || j.State == Done || j.Report.Cursor == "" {
		return Order{}, false
	}
	next := Order{ChangeMatching: j.Order.ChangeMatching, Key: "after " + j.ID}
	next.Cursor, next.Expected = j.Report.Cursor, nil
	if n := j.Order.Counted; n != nil {
		left := max(0, *n-j.Report.Matched)
		next.Counted = &left
	}
	return next, true
}

// job is the work of an order. All but the fields of its beginning are guarded by the mutex of Jobs.
type job struct {
	id        string
	principal string
	order     Order
	began     time.Time
	stop      context.CancelCauseFunc

	stopping bool
	ended    time.Time
	state    State
	report   api.ChangeReport
	why      string
}

func (o *job) shown() Job {
	return Job{
		ID:       o.id,
		Order:    o.order,
		State:    o.state,
		Stopping: o.stopping && o.ended.IsZero(),
		Began:    o.began,
		Ended:    o.ended,
		Report:   o.report,
		Why:      o.why,
	}
}

// run carries an order out.
func (j *Jobs) run(ctx context.Context, one *job, by Caller) {
	err := by.Lines(ctx, api.Question{
		Method: http.MethodPost,
		Path:   "/v1/tasks:change-matching",
		Body:   one.order.ChangeMatching,
	}, func(line []byte) error {
		var told api.ChangeReport
		if err := json.Unmarshal(line, &told); err != nil {
			return fmt.Errorf("read a report: %w", err)
		}
		j.mu.Lock()
		defer j.mu.Unlock()
		if told.Cursor == "" && !told.Done { // nothing has begun: it is where it was
			told.Cursor = one.report.Cursor
		}
		if one.report = told; one.stopping {
			return errStopped
		}
		return nil
	})
	j.mu.Lock()
	defer j.mu.Unlock()
	one.ended = j.now()
	one.state, one.why = stateOf(context.Cause(ctx), &one.report, err)
}

// stateOf returns how a job has ended: cause is why it was ended, and err what its question came to.
func stateOf(cause error, last *api.ChangeReport, err error) (State, string) {
	switch {
	case last.Done:
		return Done, ""
	case errors.Is(cause, errStopped), errors.Is(err, errStopped):
		return Stopped, ""
	case errors.Is(cause, errNodeEnds):
		return NodeEnds, errNodeEnds.Error()
	case last.Problem != nil:
		return Failed, last.Problem.Error()
	case err != nil:
		return Failed, err.Error()
	case last.Failed > 0:
		return Failed, "it is not known what became of some tasks, or they could not be asked for"
	}
	return Failed, "the answer has ended before its end"
}
