package mirror

import (
	"context"
	"errors"
	"fmt"
	"io"

	"taskledger/cmd/node/internal/mirror/trees"
	"taskledger/cmd/node/internal/output"
	"taskledger/events"
	"taskledger/task"
	"taskledger/work"
	workprogress "taskledger/work/progress"
)

// LimitError reports that more was to be deleted than --max-deletes allows.
type LimitError struct {
	Limit   int64
	Applied bool // it was found when something was applied already, since the target had changed meanwhile
}

// Error implements error.
func (e *LimitError) Error() string {
	text := fmt.Sprintf("more than %d files, links and directories would be deleted (--max-deletes)", e.Limit)
	if e.Applied {
		return text + ", which was found when the mirror was under way: what was done before stays, and with a higher limit, " +
			"the same arguments and the same --data it goes on"
	}
	return text + ": nothing was changed; begin again with a higher limit if they are to go"
}

// FailedError reports that the trees are not equal.
type FailedError struct{ Items int64 }

// Error implements error.
func (e *FailedError) Error() string {
	return fmt.Sprintf("%d files, links or directories could not be mirrored", e.Items)
}

// sum adds up what a work did.
func sum(of *workprogress.Work) (s trees.Sums) {
	s.AtMost = of.Permits.Uncertain > 0
	for i := range of.Partitions {
		p := &of.Partitions[i]
		if p.Mode != work.Full.String() {
			s.Failed += int64(p.Items.Failed)
			continue
		}
		counters := map[string]int64{}
		for _, t := range p.Thresholds {
			counters[t.Counter] = int64(t.Count)
		}
		if of.Behavior == trees.FollowID { // an item that fails counts by no counter
			s.AddFollowed(counters, int64(p.Items.Failed))
			continue
		}
		s.Add(work.Full, counters, int64(p.Items.Failed))
	}
	return s
}

// Counts holds the end of a mirror as JSON.
type Counts struct {
	Task    events.TaskID `json:"task"`    // of the work
	Copied  int64         `json:"copied"`  // files and links
	Deleted int64         `json:"deleted"` // files, links and directories
	Failed  int64         `json:"failed"`  // files, links and directories
	// AtMost tells that Copied and Deleted may be too high.
	AtMost bool `json:"at_most,omitempty"`
	// Error is the reason of an end that is no success.
	Error *Reason `json:"error,omitempty"`
	// Failures are the first of those that failed, at most 20.
	Failures []workprogress.ItemError `json:"failures,omitempty"`
}

// Reason says why a mirror has not come to a good end.
type Reason struct {
	Code    string `json:"code"` // threshold, items where some could not be mirrored, or that of the task
	Message string `json:"message"`
}

// reason returns the reason that an outcome has; nil for a success.
func reason(outcome error) *Reason {
	if outcome == nil {
		return nil
	}
	r := &Reason{Code: events.CodeItems, Message: outcome.Error()}
	if _, is := errors.AsType[*LimitError](outcome); is {
		r.Code = events.CodeThreshold
	}
	if failure, is := errors.AsType[*task.Error](outcome); is {
		r.Code, r.Message = failure.Code, failure.Message
	}
	return r
}

// counts returns the end of a mirror.
func counts(of events.TaskID, s trees.Sums, failures []workprogress.ItemError, outcome error) Counts {
	return Counts{
		Task:     of,
		Copied:   s.Copied,
		Deleted:  s.Deleted,
		Failed:   s.Failed,
		AtMost:   s.AtMost,
		Error:    reason(outcome),
		Failures: failures,
	}
}

// report prints the first failures and the counts.
func (r *run) report(ctx context.Context, all []ending, s trees.Sums, outcome error) error {
	var failures []workprogress.ItemError
	for _, e := range all {
		if e.sums.Failed == 0 {
			continue
		}
		some, err := r.failures(ctx, e.task)
		if err != nil {
			return err
		}
		failures = append(failures, some...)
		failures = failures[:min(len(failures), maxTold)]
	}
	if s.Failed > 0 {
		r.tellFailures(failures, s.Failed)
	}
	if r.JSON {
		return output.New(r.Out, true).Row(counts(r.Task, s, failures, outcome))
	}
	_, err := io.WriteString(r.Out, words(s))
	return err
}

// words returns the lines with which a mirror ends.
func words(s trees.Sums) string {
	most := ""
	if s.AtMost {
		most = " at most"
	}
	text := fmt.Sprintf("copied %d%s\ndeleted %d%[2]s\n", s.Copied, most, s.Deleted)
	if s.Failed > 0 {
		text += fmt.Sprintf("failed %d\n", s.Failed)
	}
	return text
}

// failures returns the first items of a work that failed, at most maxTold.
func (r *run) failures(ctx context.Context, of events.TaskID) (all []workprogress.ItemError, err error) {
	for cursor := ""; ; {
		page, err := r.client.Operations().WorkFailures(ctx, of, cursor, 0)
		if err != nil {
			return nil, fmt.Errorf("read which items failed: %w", err)
		}
		for _, of := range page.Buckets {
			all = append(all, of.Errors...)
		}
		if cursor = page.Cursor; cursor == "" || len(all) >= maxTold {
			return all[:min(len(all), maxTold)], nil
		}
	}
}

// tellFailures prints the first items that failed, and how many others did.
func (r *run) tellFailures(first []workprogress.ItemError, all int64) {
	for _, e := range first {
		fmt.Fprintf(r.Err, "failed: %s\n", output.Clean(fmt.Sprintf("%q: %s", e.Item, e.Message)))
	}
	if more := all - int64(len(first)); more > 0 {
		fmt.Fprintf(r.Err, "and %d others\n", more)
	}
}
