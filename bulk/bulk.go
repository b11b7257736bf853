// Package bulk changes many tasks: those that a filter selects, page by page, so that whoever is interrupted goes on where it was.
package bulk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"sync"
	"time"

	"taskledger/events"
	"taskledger/projection"
	"taskledger/projection/listing"
	"taskledger/store"
	"taskledger/task"
)

const (
	// abreast is how many tasks are changed at once.
	abreast = 256
	// pageTasks is how many tasks are listed at once, which is what may be looked at again after an interruption.
	pageTasks = 1000
	// maxProblems is how many tasks are named that could not be changed.
	maxProblems = 10
	// patience bounds how long a task is tried again that is refused for lack of room.
	patience = 30 * time.Second
)

// Client lists and changes tasks; *engine.Client implements it.
type Client interface {
	ListPage(ctx context.Context, f listing.Filter, cursor string) (listing.Page, error)
	Change(ctx context.Context, seen *projection.Task, to task.Operation, reason string) error
}

// Options say how the tasks are changed. All may be zero.
type Options struct {
	Cursor string           // goes on after a Report that had it, with the same filter and operation
	DryRun bool             // changes nothing
	Reason string           // of Cancel
	Now    func() time.Time // default time.Now
}

// Report is what became of the tasks so far.
type Report struct {
	Matched int64 `json:"matched"` // tasks that the filter has selected
	Changed int64 `json:"changed"`
	Refused int64 `json:"refused"` // the state of the task forbids it, or is another one since it was listed
	Gone    int64 `json:"gone"`    // the task was deleted or forgotten since it was listed
	Failed  int64 `json:"failed"`  // it is not known what became of the task, or it could not be asked for; the cursor stays before it

	Problems []error           `json:"-"`                // of the first that were refused or failed
	Missing  []listing.Missing `json:"-"`                // shards that were not heard
	Rows     []listing.Count   `json:"-"`                // the tasks that have matched, by behavior, status and substatus
	Cursor   string            `json:"cursor,omitempty"` // goes on from here; "" = all is done
}

// Each does an operation with every task that a filter selects, newest first, and yields a report after each page: up to 1,000 tasks. Its
// caller may stop at any report, or be killed, and go on later with the last cursor that it has seen, which passes over no task that has
// Failed. A task that is in another life since it was listed, or has another status, is left as it is, and Refused. Each ends with an error
// when a page cannot be listed, and with one that wraps store.ErrUnavailable when shards are missing at the end; the cursor of the report
// asks for them, too.
//
// The tasks are those that were created before the first page, by the clock of the caller, and for task.Retry ended before it. So no task
// that fails again is retried twice, also where a page is gone through again after an interruption.
func Each(ctx context.Context, c Client, f listing.Filter, op task.Operation, o Options) iter.Seq2[Report, error] {
	return func(yield func(Report, error) bool) {
		r := run{Client: c, op: op, reason: o.Reason, dry: o.DryRun}
		now := time.Now
		if o.Now != nil {
			now = o.Now
		}
		began, cursor, err := parse(o.Cursor, now())
		if err != nil {
			yield(Report{}, err)
			return
		}
		f = before(f, op, began)
		f.Limit = pageTasks
		unsure := "" // the cursor of the first page with a task of which it is not known what became
		for more := true; more; {
			here, failed := format(began, cursor), r.Failed
			r.Cursor = cmp.Or(unsure, here)
			page, err := c.ListPage(ctx, f, cursor)
			if err == nil {
				err = r.change(ctx, page.Tasks)
			}
			if err != nil {
				yield(r.Report, err)
				return
			}
			if r.Failed > failed {
				unsure = cmp.Or(unsure, here)
			}
			r.Missing, cursor = page.Missing, page.Cursor
			if r.Cursor = unsure; unsure == "" && cursor != "" {
				r.Cursor = format(began, cursor)
			}
			more = cursor != "" && !page.Through
			if !more && len(page.Missing) > 0 {
				err = fmt.Errorf("%d shards are missing: %w: %w", len(page.Missing), store.ErrUnavailable, page.Missing[0].Err)
			}
			if !yield(r.Report, err) {
				return
			}
		}
	}
}

// before selects of a filter what was there at a time.
func before(f listing.Filter, op task.Operation, began time.Time) listing.Filter {
	if f.CreatedTo.IsZero() || f.CreatedTo.After(began) {
		f.CreatedTo = began
	}
	if op == task.Retry && (f.EndedTo.IsZero() || f.EndedTo.After(began)) {
		f.EndedTo = began
	}
	return f
}

// format makes the cursor of a page that of a bulk operation.
func format(began time.Time, cursor string) string {
	return strconv.FormatInt(began.UnixMilli(), 36) + "." + cursor
}

func parse(text string, now time.Time) (began time.Time, cursor string, err error) {
	if text == "" {
		return time.UnixMilli(now.UnixMilli()), "", nil
	}
	at, cursor, ok := strings.Cut(text, ".")
	millis, err := strconv.ParseInt(at, 36, 64)
	if !ok || err != nil || millis < 0 || millis > now.Add(24*time.Hour).UnixMilli() {
		return began, "", &store.InvalidError{Field: "cursor", Problem: "it is none of a bulk operation"}
	}
	return time.UnixMilli(millis), cursor, nil
}

// run is an operation under way.
type run struct {
	Client
	op     task.Operation
	reason string
	dry    bool

	mu sync.Mutex
	Report
}

// change does the operation with the tasks of a page, and returns an error only where ctx has ended before all were done.
func (r *run) change(ctx context.Context, tasks []projection.Task) error {
	r.count(tasks)
	if r.dry {
		return nil
	}
	next := make(chan *projection.Task)
	var workers sync.WaitGroup
	for range min(abreast, len(tasks)) {
		workers.Go(func() {
			for seen := range next {
				r.note(seen.ID, r.patiently(ctx, seen))
			}
		})
	}
	var err error
	for i := range tasks {
		if err = ctx.Err(); err != nil {
			err = context.Cause(ctx)
			break
		}
		next <- &tasks[i]
	}
	close(next)
	workers.Wait()
	if err == nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return err
}

// count adds tasks to those that have matched.
func (r *run) count(tasks []projection.Task) {
	r.Matched += int64(len(tasks))
	rows := r.Rows
	for i := range tasks {
		t := &tasks[i]
		substatus, _ := t.Substatus(events.MillisOf(time.Now()))
		rows = append(rows, listing.Count{Behavior: t.Kind.Behavior, Status: t.Status, Substatus: substatus, Tasks: 1})
	}
	r.Rows = listing.Sum(rows)
}

// patiently does the operation with a task, again when there is no room for it.
func (r *run) patiently(ctx context.Context, seen *projection.Task) error {
	ctx, stop := context.WithTimeout(ctx, patience)
	defer stop()
	for {
		err := r.Change(ctx, seen, r.op, r.reason)
		full, overloaded := errors.AsType[*task.OverloadError](err)
		if !overloaded {
			return err
		}
		select {
		case <-time.After(max(full.RetryAfter, 10*time.Millisecond)):
		case <-ctx.Done():
			return err
		}
	}
}

// note counts what became of a task.
func (r *run) note(id events.TaskID, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, refused := errors.AsType[*task.StateError](err)
	switch {
	case err == nil:
		r.Changed++
		return
	case errors.Is(err, task.ErrNotFound):
		r.Gone++
		return
	case refused:
		r.Refused++
	default:
		r.Failed++
	}
	if len(r.Problems) < maxProblems {
		r.Problems = append(r.Problems, fmt.Errorf("task %s: %w", id, err))
	}
}
