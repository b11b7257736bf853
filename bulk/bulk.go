// Package bulk changes many tasks: those that a filter selects, page by page, so that whoever is interrupted goes on
// where it was.
package bulk

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"taskledger/events"
	"taskledger/projection/listing"
	"taskledger/store"
	"taskledger/task"
)

const (
	// abreast is the number of tasks changed at once.
	abreast = 256
	// pageTasks is the number of tasks listed at once. After an interruption, those of one page are looked at again.
	pageTasks = 1000
	// maxProblems bounds the tasks that a report names because they could not be changed.
	maxProblems = 10
	// timeout bounds the wait for the answer for a task.
	timeout = 30 * time.Second
	// roomWithin bounds how long tasks of a page that are refused for lack of room are tried again.
	roomWithin = 10 * time.Second
	// cancelTries bounds the attempts to cancel a task as it was seen last, when it has another event each time.
	cancelTries = 10
)

// Client lists and changes tasks. engine.Operations.Each brings one that asks the cluster.
type Client interface {
	ListPage(ctx context.Context, f task.Filter, cursor string) (task.Page, error)
	Change(ctx context.Context, seen *task.Task, to task.Operation, reason string) error
	GetLinear(ctx context.Context, id events.TaskID) (task.Task, error)
}

// Options says how the tasks are changed. The zero value changes them from the first one on.
type Options struct {
	// Cursor is the cursor of the last Report, behind which Each goes on, with the same filter, operation and DryRun;
	// "" = it begins anew.
	Cursor string
	DryRun bool   // true changes nothing, and only counts
	Reason string // of task.Cancel
}

// Report counts the tasks so far by their result.
type Report struct {
	Matched int64 `json:"matched"` // tasks that the filter has selected: the sum of the others, but in a dry run
	Changed int64 `json:"changed"`
	Refused int64 `json:"refused"` // tasks whose state forbids the change
	// Left counts tasks that were left as they are, since they have had another event since the operation began; Each
	// says which ones task.Cancel leaves.
	Left int64 `json:"left"`
	Gone int64 `json:"gone"` // tasks that were deleted or forgotten since they were listed
	// Failed counts tasks of which nobody knows whether they were changed, or whose change could not be asked for;
	// the cursor stays before them.
	Failed int64 `json:"failed"`

	Problems []error        `json:"-"` // the first refusals and failures
	Missing  []task.Missing `json:"-"` // shards that the last page lacks
	// Rows counts the tasks that have matched and are not left, by behavior, status and substatus.
	Rows []task.Count `json:"-"`
	// Cursor goes on from here; "" = all is done, or, beside an error, nothing has begun.
	Cursor string `json:"cursor,omitempty"`
}

// Each does an operation with every task that a filter selects, newest first. It yields a report before the first task
// is changed, and one after each page of up to 1,000 tasks. Its caller may stop at any report, or be killed, and go on
// later with the last cursor that it has seen.
//
// A task is changed as it was listed, or not at all, and only if its last event was there when the operation began,
// which the cursor tells by the last entry of each shard. So a task that was changed before an interruption is not
// changed again after it, whatever became of it meanwhile. The other tasks that have made an event since are left as
// well, for an operation that begins later.
//
// A task that is cancelled twice is as one that is cancelled once, and one that runs may make an event at any time. So
// task.Cancel looks again at a task that has another event: if it is the same life, was created before the operation
// began, still matches, has not ended for good and is not cancelled yet, it is cancelled as it is then.
//
// While nobody answers for a shard Each waits, and yields a report with what is Missing after each attempt. It ends
// with an error when a page cannot be listed, when no task of a page could be changed for lack of room, and, wrapping
// store.ErrUnavailable, when shards refuse to be listed. The cursor of the last report then goes on there, as it does
// when tasks have Failed.
func Each(ctx context.Context, c Client, f task.Filter, to task.Operation, o Options) iter.Seq2[Report, error] {
	return func(yield func(Report, error) bool) {
		at, err := parse(o.Cursor, begin(f, to, o.DryRun))
		if to >= task.OperationCount {
			err = &store.InvalidError{
				Field:   "operation",
				Problem: fmt.Sprintf("%d, want less than %d", uint64(to), uint64(task.OperationCount)),
			}
		}
		if err != nil {
			yield(Report{}, err)
			return
		}
		f.Node, f.Limit = at.Node, pageTasks
		r := run{Client: c, to: to, options: o, at: at, filter: f}
		r.Cursor = o.Cursor // until a page is listed
		for more := true; more && err == nil; {
			var page task.Page
			if page, err = c.ListPage(ctx, f, r.at.List); err == nil {
				err = r.hear(page, yield)
			}
			if errors.Is(err, errStopped) {
				return
			}
			if err == nil {
				err = r.change(ctx, page.Tasks)
			}
			if err == nil {
				more, err = r.turn(page)
			}
			if !yield(r.Report, err) {
				return
			}
		}
	}
}

// errStopped says that the caller has seen enough.
var errStopped = errors.New("stopped")

// run is an operation under way.
type run struct {
	Client
	to      task.Operation
	options Options
	filter  task.Filter
	at      cursor
	unsure  *string // cursor of the list at the first page with a task that has Failed

	mu sync.Mutex
	Report
	full error // why a task of the page was refused for lack of room
}

// hear records the shards of a page. If some are heard for the first time, it yields a report before a task of them is
// changed.
func (r *run) hear(page task.Page, yield func(Report, error) bool) error {
	first, err := r.at.hear(page)
	if err != nil {
		return err
	}
	if r.mark(); first && !r.options.DryRun && !yield(r.Report, nil) {
		return errStopped
	}
	return nil
}

// mark lets the report go on where the operation is, or before the first page with a task that has Failed.
func (r *run) mark() {
	at := r.at
	if r.unsure != nil {
		at.List = *r.unsure
	}
	r.Cursor = at.text()
}

// turn goes on to the next page, and returns whether there is one.
func (r *run) turn(page task.Page) (more bool, err error) {
	r.Missing = page.Missing
	silent := slices.ContainsFunc(page.Missing, func(m task.Missing) bool { return m.Silent })
	if r.at.List = page.Cursor; page.Cursor != "" || r.unsure != nil {
		r.mark()
	} else {
		r.Cursor = ""
	}
	more = page.Cursor != "" && (!page.Through || silent)
	if !more && len(page.Missing) > 0 {
		err = fmt.Errorf("%d shards are missing: %w: %w", len(page.Missing), store.ErrUnavailable, page.Missing[0].Err)
	}
	return more, err
}

// change does the operation with the tasks of a page that it leaves not. It returns an error where ctx has ended before
// all were done, and where none could be changed for lack of room.
func (r *run) change(ctx context.Context, tasks []task.Task) error {
	r.Matched += int64(len(tasks))
	all := len(tasks)
	tasks = slices.DeleteFunc(tasks, func(t task.Task) bool { return r.at.since(t.ID, t.Version.Ref) && !r.cancels(&t) })
	r.Left += int64(all - len(tasks))
	r.count(tasks)
	if r.options.DryRun {
		return nil
	}
	changed, failed := r.Changed, r.Failed
	r.full = nil
	next := make(chan *task.Task)
	until := time.Now().Add(roomWithin)
	var workers sync.WaitGroup
	for range min(abreast, len(tasks)) {
		workers.Go(func() {
			for seen := range next {
				r.note(seen.ID, r.operate(ctx, seen, until))
			}
		})
	}
	for i := range tasks {
		if ctx.Err() != nil {
			break
		}
		next <- &tasks[i]
	}
	close(next)
	workers.Wait()
	if r.Failed > failed && r.unsure == nil {
		list := r.at.List
		r.unsure = &list
	}
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case r.full != nil && r.Changed == changed:
		return fmt.Errorf("no task of a page could be changed: %w", r.full)
	}
	return nil
}

// count adds tasks to those that have matched.
func (r *run) count(tasks []task.Task) {
	rows := r.Rows
	for i := range tasks {
		t := &tasks[i]
		rows = append(rows, task.Count{Behavior: t.Behavior, Status: t.Status, Substatus: t.Substatus, Tasks: 1})
	}
	r.Rows = task.SumCounts(rows)
}

// cancels reports whether a task that has made an event since the operation began is cancelled nevertheless.
func (r *run) cancels(t *task.Task) bool {
	return r.to == task.Cancel && !r.at.since(t.ID, t.Details.Life) && !t.Final() && !t.Cancelled
}

// operate does the operation with a task, and again as long as there is no room for it.
func (r *run) operate(ctx context.Context, seen *task.Task, until time.Time) error {
	ctx, stop := context.WithTimeout(ctx, timeout)
	defer stop()
	for {
		err := r.once(ctx, seen)
		full, overloaded := errors.AsType[*task.OverloadError](err)
		if !overloaded || !time.Now().Before(until) {
			return err
		}
		select {
		case <-time.After(max(full.RetryAfter, 10*time.Millisecond)):
		case <-ctx.Done():
			return err
		}
	}
}

// once does the operation with a task as it was seen. A task to cancel that has changed is looked at again.
func (r *run) once(ctx context.Context, seen *task.Task) error {
	for try := 1; ; try++ {
		err := r.Change(ctx, seen, r.to, r.options.Reason)
		if state, refused := errors.AsType[*task.StateError](err); !refused || !state.Changed || r.to != task.Cancel ||
			try == cancelTries {
			return err
		}
		now, failed := r.GetLinear(ctx, seen.ID)
		if failed != nil {
			return failed
		}
		if now.Details.Life != seen.Details.Life || !r.cancels(&now) || !listing.Matches(r.filter, &now) {
			return err
		}
		seen = &now
	}
}

// note counts what became of a task.
func (r *run) note(id events.TaskID, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	state, refused := errors.AsType[*task.StateError](err)
	_, overloaded := errors.AsType[*task.OverloadError](err)
	switch {
	case err == nil:
		r.Changed++
		return
	case errors.Is(err, task.ErrNotFound):
		r.Gone++
		return
	case refused && state.Changed:
		r.Left++
		return
	case refused:
		r.Refused++
	default:
		r.Failed++
	}
	if overloaded {
		r.full = err
	}
	if len(r.Problems) < maxProblems {
		r.Problems = append(r.Problems, fmt.Errorf("task %s: %w", id, err))
	}
}
