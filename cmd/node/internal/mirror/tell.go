package mirror

import (
	"context"
	"fmt"
	"io"

	"taskledger/cmd/node/internal/mirror/trees"
	"taskledger/cmd/node/internal/output"
	"taskledger/events"
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
		return text + ", which was found when the mirror was under way: what was done before stays"
	}
	return text + ": nothing was changed"
}

// FailedError reports that the trees are not equal.
type FailedError struct{ Items int64 }

// Error implements error.
func (e *FailedError) Error() string {
	return fmt.Sprintf("%d files, links or directories could not be mirrored", e.Items)
}

// sum adds up what a work did.
func sum(of *workprogress.Work) (s trees.Sums) {
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
}

// report prints the first failures and the counts.
func (r *run) report(ctx context.Context, s trees.Sums) error {
	if s.Failed > 0 {
		if err := r.tellFailures(ctx, s.Failed); err != nil {
			return err
		}
	}
	if r.JSON {
		return output.New(r.Out, true).Row(Counts{
			Task:    r.Task,
			Copied:  s.Copied,
			Deleted: s.Deleted,
			Failed:  s.Failed,
		})
	}
	text := fmt.Sprintf("copied %d\ndeleted %d\n", s.Copied, s.Deleted)
	if s.Failed > 0 {
		text += fmt.Sprintf("failed %d\n", s.Failed)
	}
	_, err := io.WriteString(r.Out, text)
	return err
}

func (r *run) tellFailures(ctx context.Context, all int64) error {
	told := int64(0)
	for cursor := ""; ; {
		page, err := r.client.Operations().WorkFailures(ctx, r.Task, cursor, 0)
		if err != nil {
			return fmt.Errorf("read which items failed: %w", err)
		}
		for _, of := range page.Buckets {
			for _, e := range of.Errors {
				if told == maxTold {
					fmt.Fprintf(r.Err, "and %d others\n", all-told)
					return nil
				}
				told++
				fmt.Fprintf(r.Err, "failed: %s\n", output.Clean(fmt.Sprintf("%q: %s", e.Item, e.Message)))
			}
		}
		if cursor = page.Cursor; cursor == "" {
			return nil
		}
	}
}
