package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"taskledger/api/operations"
	"taskledger/api/problem"
	"taskledger/api/shape"
	"taskledger/bulk"
	"taskledger/events"
	"taskledger/projection/listing"
	"taskledger/store"
	"taskledger/task"
)

// ChangeMatching asks for the same of all tasks that a filter selects.
type ChangeMatching struct {
	Operation operations.Verb   `json:"operation"`         // cancel, retry, run-now or delete
	Filter    map[string]string `json:"filter"`            // by the fields of the list of tasks; one at least
	DryRun    bool              `json:"dry_run,omitempty"` // only count them
	Cursor    string            `json:"cursor,omitempty"`  // continues an interrupted request: the cursor of its last line. Operation, filter and dry_run must be the same
	Reason    string            `json:"reason,omitempty"`  // for cancel only
	// Expected is how many tasks a dry run has counted. When it is another number now, none is changed.
	Expected *int64 `json:"expected,omitempty"`
}

// ChangeReport is a line of the answer: what became of the tasks so far.
type ChangeReport struct {
	bulk.Report
	Counts   []listing.Count    `json:"counts,omitempty"`   // what a dry run has counted, in its last line
	Problems []*problem.Problem `json:"problems,omitempty"` // why the first tasks were refused or failed
	Missing  []Missing          `json:"missing,omitempty"`  // shards that are waited for
	Done     bool               `json:"done"`               // this is the last line, and nothing is left to do
	Problem  *problem.Problem   `json:"problem,omitempty"`  // why this is the last line, although something is
}

func (c *Call) changeMatching() error {
	var ask ChangeMatching
	if err := c.Read(&ask); err != nil {
		return err
	}
	operation, is := operations.OfMany[ask.Operation]
	if !is {
		return &store.InvalidError{Field: "operation", Problem: fmt.Sprintf("%.32q: want cancel, retry, run-now or delete", ask.Operation)}
	}
	if ask.Reason != "" && ask.Operation != operations.Cancel {
		return &store.InvalidError{Field: "reason", Problem: "it is of cancel alone"}
	}
	if err := events.CheckReason(ask.Reason); err != nil {
		return &store.InvalidError{Field: "reason", Problem: err.Error()}
	}
	if ask.Expected != nil && (*ask.Expected < 0 || ask.DryRun || ask.Cursor != "") {
		return &store.InvalidError{Field: "expected", Problem: "want 0 or more, and neither dry_run nor cursor with it"}
	}
	f, left, err := c.matching(ask.Filter)
	if err != nil {
		return err
	}
	ctx, cancel := c.untilEnded()
	defer cancel()
	if ask.Expected != nil {
		if err := c.expect(ctx, *ask.Expected, f, left, operation); err != nil {
			return err
		}
	}
	lines := &stream{call: c}
	encode := json.NewEncoder(lines)
	if !left {
		return json.NewEncoder(lines).Encode(ChangeReport{Done: true})
	}
	for r, failed := range c.api.operator.Each(ctx, f, operation, bulk.Options{Cursor: ask.Cursor, DryRun: ask.DryRun, Reason: ask.Reason}) {
		if failed != nil && !c.begun && r.Matched == 0 {
			return failed
		}
		line := ChangeReport{Report: r, Missing: missing(r.Missing), Done: failed == nil && r.Cursor == ""}
		for _, err := range r.Problems {
			line.Problems = append(line.Problems, problem.Of(err))
		}
		if failed != nil {
			line.Problem = c.told(failed)
		}
		if ask.DryRun && line.Done {
			line.Counts = r.Rows
		}
		if err := encode.Encode(line); err != nil {
			return err
		}
	}
	return lines.end()
}

// expect refuses a change of another number of tasks than expected. Left says that the token may know of some.
func (c *Call) expect(ctx context.Context, expected int64, f listing.Filter, left bool, operation task.Operation) error {
	var n int64
	if left {
		for r, err := range c.api.operator.Each(ctx, f, operation, bulk.Options{DryRun: true}) {
			if err == nil && len(r.Missing) > 0 {
				err = fmt.Errorf("%w: the tasks of shard %d cannot be counted", store.ErrUnavailable, r.Missing[0].Shard)
			}
			if err != nil {
				return err
			}
			n = r.Matched - r.Left
		}
	}
	_ = http.NewResponseController(c.w).SetWriteDeadline(time.Now().Add(writeWithin)) // counting may have taken long
	if n == expected {
		return nil
	}
	p := problem.New(problem.OtherCount, "%d tasks match, expected are %d: none is changed", n, expected)
	p.Field, p.Got = "expected", &n
	return p
}

// matching makes a filter of the fields of a body. It reports false where the token knows of no task that matches.
func (c *Call) matching(fields map[string]string) (f listing.Filter, left bool, err error) {
	if len(fields) == 0 {
		return f, false, &store.InvalidError{Field: "filter", Problem: "it is empty: want at least one field, as all tasks would match"}
	}
	names, _ := listing.Fields()
	known := map[string]bool{}
	for _, name := range names {
		known[name] = true
	}
	for name, text := range fields {
		switch {
		case !known[name]:
			return f, false, &store.InvalidError{Field: shape.Clip(name), Problem: "a filter has no such field"}
		case text == "":
			return f, false, &store.InvalidError{Field: name, Problem: "it is empty"}
		}
	}
	f, left, err = c.filter(func(field string) string { return fields[field] })
	if err == nil && left && f.Behavior == "" && len(c.by.Behaviors) > 0 {
		return f, false, &store.InvalidError{Field: "behavior", Problem: "the token is for some behaviors: want one of them in the filter"}
	}
	return f, left, err
}
