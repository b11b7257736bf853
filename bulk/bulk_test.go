package bulk_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"taskledger/bulk"
	"taskledger/events"
	"taskledger/projection"
	"taskledger/projection/listing"
	"taskledger/store"
	"taskledger/task"
)

// cluster is a Client with tasks that fail again as often as they are retried.
type cluster struct {
	mu      sync.Mutex
	now     time.Time
	tasks   map[events.TaskID]*projection.Task
	changes map[events.TaskID][]string
	refuses map[events.TaskID]error
	missing []listing.Missing
	after   func(n int) // called with the number of changes so far
	made    int
}

var epoch = time.UnixMilli(1_800_000_000_000)

// newCluster has n tasks, of which the even ones have failed for good, a minute ago, and the odd ones wait.
func newCluster(n int) *cluster {
	c := &cluster{now: epoch, tasks: map[events.TaskID]*projection.Task{}, changes: map[events.TaskID][]string{}, refuses: map[events.TaskID]error{}}
	for i := range n {
		created := events.MillisOf(epoch.Add(-time.Hour + time.Duration(i)*time.Millisecond))
		t := &projection.Task{ID: events.TaskID(fmt.Sprintf("t%06d", i)), Kind: &projection.Kind{Behavior: "work"}, CreatedAt: created, Status: projection.Created, Due: created}
		if i%2 == 0 {
			t.Status, t.Due, t.EndedAt = projection.Failure, 0, events.MillisOf(epoch.Add(-time.Minute))
		}
		c.tasks[t.ID] = t
	}
	return c
}

// ListPage goes by id, from the last one down.
func (c *cluster) ListPage(_ context.Context, f listing.Filter, cursor string) (page listing.Page, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if cursor == "wrong" {
		return page, &store.InvalidError{Field: "cursor", Problem: "wrong"}
	}
	ids := slices.Sorted(maps.Keys(c.tasks))
	slices.Reverse(ids)
	looked := 0
	for _, id := range ids {
		if cursor != "" && string(id) >= cursor {
			continue
		}
		if looked == 300 || len(page.Tasks) == f.Limit { // a page may be short
			page.Cursor = string(id) + "~"
			return page, nil
		}
		looked++
		t := c.tasks[id]
		ended := f.EndedTo.IsZero() || t.EndedAt != 0 && t.EndedAt.Time().Before(f.EndedTo)
		if (f.Status == 0 || t.Status == f.Status) && ended && t.CreatedAt.Time().Before(f.CreatedTo) {
			page.Tasks = append(page.Tasks, *t)
		}
	}
	page.Missing, page.Through = c.missing, true
	return page, nil
}

func (c *cluster) change(id events.TaskID, what string, change func(t *projection.Task)) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.refuses[id]; err != nil {
		if _, overloaded := errors.AsType[*task.OverloadError](err); overloaded {
			delete(c.refuses, id)
		}
		return err
	}
	c.now = c.now.Add(time.Millisecond)
	c.changes[id] = append(c.changes[id], what)
	change(c.tasks[id])
	if c.made++; c.after != nil {
		c.after(c.made)
	}
	return nil
}

// Change lets a task that is retried fail again at once, and refuses what is no longer as it was seen.
func (c *cluster) Change(_ context.Context, seen *projection.Task, to task.Operation, reason string) error {
	c.mu.Lock()
	now := c.tasks[seen.ID]
	c.mu.Unlock()
	if now != nil && now.Status != seen.Status {
		return &task.StateError{Task: seen.ID, Problem: "it has changed since"}
	}
	return c.change(seen.ID, strings.TrimSpace(to.String()+" "+reason), func(t *projection.Task) {
		switch to {
		case task.Cancel:
			t.Status, t.Due, t.EndedAt = projection.Failure, 0, events.MillisOf(c.now)
		case task.Retry:
			t.EndedAt = events.MillisOf(c.now)
		case task.RunNow:
			t.Due = events.MillisOf(c.now)
		case task.Delete:
			delete(c.tasks, t.ID)
		}
	})
}

func (c *cluster) clock() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// last goes through all reports, and returns the last one.
func last(t *testing.T, c *cluster, f listing.Filter, op task.Operation, o bulk.Options) (r bulk.Report) {
	t.Helper()
	o.Now = c.clock
	for report, err := range bulk.Each(t.Context(), c, f, op, o) {
		if r = report; err != nil {
			t.Fatal(err)
		}
	}
	return r
}

func TestEach_DoesTheOperationWithAllThatMatchAndCountsWhatBecameOfThem(t *testing.T) {
	const n = 5000
	failed, waiting := listing.Filter{Status: projection.Failure}, listing.Filter{Status: projection.Created}
	for op, row := range map[task.Operation]struct {
		f    listing.Filter
		want string
	}{task.Cancel: {waiting, "cancel why"}, task.Retry: {failed, "retry why"}, task.RunNow: {waiting, "run why"}, task.Delete: {failed, "delete why"}, task.Suspend: {failed, ""}} {
		dry := op == task.Suspend
		c := newCluster(n)
		var some []events.TaskID
		for id, task := range c.tasks {
			if task.Status == row.f.Status && len(some) < 4 {
				some = append(some, id)
			}
		}
		if !dry {
			c.refuses[some[0]] = &task.StateError{Task: some[0], Problem: "cannot"}
			c.refuses[some[1]] = fmt.Errorf("task: %w", task.ErrNotFound)
			c.refuses[some[2]] = task.ErrUnknown
			c.refuses[some[3]] = &task.OverloadError{RetryAfter: time.Millisecond} // once
		}
		r := last(t, c, row.f, op, bulk.Options{Reason: "why", DryRun: dry})
		changed := int64(n/2 - 3)
		if dry {
			changed = 0
		}
		if r.Matched != n/2 || r.Changed != changed || changed > 0 && (r.Refused != 1 || r.Gone != 1 || r.Failed != 1 || len(r.Problems) != 2) || (r.Cursor == "") != (r.Failed == 0) {
			t.Errorf("operation %d: %+v", op, r)
		}
		if len(c.changes) != int(changed) {
			t.Errorf("operation %d: %d tasks are changed, want %d", op, len(c.changes), changed)
		}
		for id, changes := range c.changes {
			if len(changes) != 1 || changes[0] != row.want {
				t.Fatalf("operation %d: task %s: %q, want %q once", op, id, changes, row.want)
			}
		}
		if len(r.Rows) != 1 || r.Rows[0].Tasks != n/2 || r.Rows[0].Behavior != "work" {
			t.Errorf("operation %d: rows %+v", op, r.Rows)
		}
	}
}

// The process ends somewhere in the midst of a page, again and again, and goes on with the last cursor that it has told.
func TestEach_ResumedWhereItWasKilledRetriesEachTaskOnce(t *testing.T) {
	const n = 10_000
	c := newCluster(n)
	f, cursor, died := listing.Filter{Status: projection.Failure}, "", 0
	for over := false; !over; {
		ctx, kill := context.WithCancelCause(t.Context())
		until := c.made + 777
		c.after = func(made int) {
			if made == until {
				kill(errors.New("killed"))
			}
		}
		over = true
		for r, err := range bulk.Each(ctx, c, f, task.Retry, bulk.Options{Cursor: cursor, Now: c.clock}) {
			if err != nil { // what it tells now, nobody hears
				over, died = false, died+1
				break
			}
			cursor = r.Cursor
		}
		kill(nil)
	}
	for id, task := range c.tasks {
		want := 0
		if task.Status == projection.Failure {
			want = 1
		}
		if got := len(c.changes[id]); got != want {
			t.Fatalf("task %s was retried %d times, want %d", id, got, want)
		}
	}
	if died < 3 {
		t.Errorf("it was killed %d times", died)
	}
}

// A task that is no longer as it was when it was listed is left as it is.
func TestEach_LeavesATaskThatHasChangedSince(t *testing.T) {
	c := newCluster(1000)
	const other = "t000000" // the last one of the list
	c.after = func(made int) {
		if made == 1 {
			c.tasks[other].Status = projection.Success
		}
	}
	r := last(t, c, listing.Filter{Status: projection.Failure}, task.Retry, bulk.Options{})
	if len(c.changes[other]) > 0 || r.Changed+r.Refused != r.Matched || r.Failed > 0 {
		t.Errorf("%+v, and it was changed: %q", r, c.changes[other])
	}
}

// What became of a task is not known: who goes on comes to it again, though pages after it were gone through.
func TestEach_GoesOnBeforeWhatHasFailed(t *testing.T) {
	c := newCluster(5000)
	const lost = "t003000"
	c.refuses[lost] = task.ErrUnknown
	r := last(t, c, listing.Filter{Status: projection.Failure}, task.Retry, bulk.Options{})
	if r.Changed != 2499 || r.Failed != 1 || r.Cursor == "" {
		t.Fatalf("%+v", r)
	}
	delete(c.refuses, lost)
	if r = last(t, c, listing.Filter{Status: projection.Failure}, task.Retry, bulk.Options{Cursor: r.Cursor}); r.Changed != 1 || r.Matched != 1 || r.Cursor != "" || len(c.changes[lost]) != 1 {
		t.Errorf("resumed: %+v, and it was changed %d times", r, len(c.changes[lost]))
	}
}

func TestEach_NamesWhatIsMissingAndWhatIsNoCursor(t *testing.T) {
	c := newCluster(10)
	c.missing = []listing.Missing{{Shard: 3, Err: errors.New("shard 3 is silent")}}
	for r, err := range bulk.Each(t.Context(), c, listing.Filter{}, task.Retry, bulk.Options{Now: c.clock, DryRun: true}) {
		if !errors.Is(err, store.ErrUnavailable) || len(r.Missing) != 1 || r.Matched != 10 {
			t.Errorf("%+v, %v; want the tasks, and what is missing", r, err)
		}
	}
	for _, cursor := range []string{"x", "-1.", "zzzzzzzzzzzzzzz.a", "0.wrong"} {
		for _, err := range bulk.Each(t.Context(), c, listing.Filter{}, task.Delete, bulk.Options{Cursor: cursor, Now: c.clock}) {
			if invalid := new(*store.InvalidError); !errors.As(err, invalid) || (*invalid).Field != "cursor" {
				t.Errorf("%q: %v, want it refused", cursor, err)
			}
		}
	}
	if len(c.changes) > 0 {
		t.Error("something was changed")
	}
}
