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
	"taskledger/api/token"
	"taskledger/bulk"
	"taskledger/store"
	"taskledger/task"
)

// ChangeMatching asks for one operation on all tasks that a filter selects.
type ChangeMatching struct {
	Operation operations.Verb   `json:"operation"`         // cancel, retry, run-now or delete
	Filter    map[string]string `json:"filter"`            // by the fields of the list of tasks; one at least
	DryRun    bool              `json:"dry_run,omitempty"` // only count them
	// Cursor continues an interrupted request: the cursor of its last line. Operation, filter and dry_run must be the
	// same.
	Cursor string `json:"cursor,omitempty"`
	Reason string `json:"reason,omitempty"` // for cancel only
	// Expected repeats the number of tasks that a dry run has counted. When it is another number now, none is changed.
	Expected *int64 `json:"expected,omitempty"`
}

// ChangeReport is one line of the answer to ChangeMatching, with the result of the tasks so far.
type ChangeReport struct {
	bulk.Report
	Counts   []task.Count       `json:"counts,omitempty"`   // the last line of a dry run has them
	Problems []*problem.Problem `json:"problems,omitempty"` // why the first tasks were refused or failed
	Missing  []Missing          `json:"missing,omitempty"`  // shards that are waited for
	Done     bool               `json:"done"`               // this is the last line, and nothing is left to do
	Problem  *problem.Problem   `json:"problem,omitempty"`  // why this is the last line, although something is
}

func (s changes) changeMatching(c *Call) error {
	var ask ChangeMatching
	if err := c.Read(&ask); err != nil {
		return err
	}
	operation, is := operations.OfMany[ask.Operation]
	if !is {
		return invalid("operation", "%.32q: want cancel, retry, run-now or delete", ask.Operation)
	}
	if ask.Reason != "" && ask.Operation != operations.Cancel {
		return invalid("reason", "it is of cancel alone")
	}
	if err := checkReason(ask.Reason); err != nil {
		return err
	}
	if ask.Expected != nil && (*ask.Expected < 0 || ask.DryRun || ask.Cursor != "") {
		return invalid("expected", "want 0 or more, and neither dry_run nor cursor with it")
	}
	f, left, err := matching(c.by, ask.Filter)
	if err != nil {
		return err
	}
	ctx, cancel := c.untilEnded()
	defer cancel()
	if ask.Expected != nil {
		if err := s.expect(ctx, c, *ask.Expected, f, left, operation); err != nil {
			return err
		}
	}
	lines := &stream{call: c}
	encode := json.NewEncoder(lines)
	if !left {
		return json.NewEncoder(lines).Encode(ChangeReport{Done: true})
	}
	o := bulk.Options{Cursor: ask.Cursor, DryRun: ask.DryRun, Reason: ask.Reason}
	for r, failed := range s.operator.Each(ctx, f, operation, o) {
		if failed != nil && !c.begun && r.Matched == 0 {
			return failed
		}
		line := ChangeReport{Report: r, Missing: missing(r.Missing), Done: failed == nil && r.Cursor == ""}
		for _, err := range r.Problems {
			line.Problems = append(line.Problems, problem.Of(err))
		}
		if failed != nil {
			line.Problem = c.problemOf(failed)
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

// expect refuses a change of another number of tasks than expected. Left says that the token may see some.
func (s changes) expect(
	ctx context.Context, c *Call, expected int64, f task.Filter, left bool, op task.Operation,
) error {
	var n int64
	if left {
		for r, err := range s.operator.Each(ctx, f, op, bulk.Options{DryRun: true}) {
			if err == nil && len(r.Missing) > 0 {
				shard := r.Missing[0].Shard
				err = fmt.Errorf("%w: the tasks of shard %d cannot be counted", store.ErrUnavailable, shard)
			}
			if err != nil {
				return err
			}
			n = r.Matched - r.Left
		}
	}
	// Counting may have taken long.
	_ = http.NewResponseController(c.w).SetWriteDeadline(time.Now().Add(writeWithin))
	if n == expected {
		return nil
	}
	p := problem.New(problem.OtherCount, "%d tasks match, expected are %d: none is changed", n, expected)
	p.Field, p.Got = "expected", &n
	return p
}

// matching returns the filter of the fields of a body. It reports false where the token sees no task that matches.
func matching(by *token.Token, fields map[string]string) (f task.Filter, left bool, err error) {
	if len(fields) == 0 {
		return f, false, invalid("filter", "it is empty: want at least one field, as all tasks would match")
	}
	names, _ := task.FilterFields()
	known := map[string]bool{}
	for _, name := range names {
		known[name] = true
	}
	for name, text := range fields {
		switch {
		case !known[name]:
			return f, false, invalid(shape.Clip(name), "a filter has no such field")
		case text == "":
			return f, false, invalid(name, "it is empty")
		}
	}
	f, left, err = filterOf(by, func(field string) string { return fields[field] })
	if err == nil && left && f.Behavior == "" && len(by.Behaviors) > 0 {
		return f, false, invalid("behavior", "the token is for some behaviors: want one of them in the filter")
	}
	return f, left, err
}
