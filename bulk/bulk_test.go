package bulk_test

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"taskledger/bulk"
	"taskledger/events"
	"taskledger/internal/message"
	"taskledger/projection"
	"taskledger/projection/taskview"
	"taskledger/store"
	"taskledger/task"
)

// cluster is a Client with tasks that fail again as often as they are retried.
type cluster struct {
	mu      sync.Mutex
	name    string
	head    uint64 // number of its last entry
	more    int    // shards besides the one of all tasks
	tasks   map[events.TaskID]*projection.Task
	changes map[events.TaskID][]string
	refuses map[events.TaskID]error
	missing []task.Missing
	pages   int         // that were listed
	node    string      // of the filter of the last one
	after   func(n int) // called with the number of changes so far
	listed  func(n int) // called with the number of pages so far, before one is returned
	made    int
	lost    error                 // of every page
	busy    map[events.TaskID]int // reports of progress that come just before changes of a task
}

var epoch = time.UnixMilli(1_800_000_000_000)

// newCluster has n tasks, of which the even ones have failed for good, a minute ago, and the odd ones wait.
func newCluster(n int) *cluster {
	c := &cluster{name: "c", head: 1, tasks: map[events.TaskID]*projection.Task{}, changes: map[events.TaskID][]string{}, refuses: map[events.TaskID]error{}}
	for i := range n {
		created := events.MillisOf(epoch.Add(-time.Hour + time.Duration(i)*time.Millisecond))
		t := &projection.Task{
			ID:        events.TaskID(fmt.Sprintf("t%06d", i)),
			Kind:      &projection.Kind{Behavior: "work"},
			CreatedAt: created,
			Status:    task.Created,
			Due:       created,
			Last:      events.RefOf(1, i),
		}
		if i%2 == 0 {
			t.Status, t.Due, t.EndedAt = task.Failure, 0, events.MillisOf(epoch.Add(-time.Minute))
		}
		c.tasks[t.ID] = t
	}
	return c
}

// shown returns a task as it is now for a caller.
func shown(t *projection.Task) task.Task { return taskview.Of(t, 1, events.MillisOf(time.Now())) }

// ListPage goes by id, from the last one down.
func (c *cluster) ListPage(_ context.Context, f task.Filter, cursor string) (page task.Page, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lost != nil {
		return page, c.lost
	}
	if c.pages++; c.listed != nil {
		defer c.listed(c.pages)
	}
	c.node, page.Nexts, page.Cluster = f.Node, append([]uint64{c.head + 1}, make([]uint64, c.more)...), c.name
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
		if f.Status == 0 || t.Status == f.Status {
			page.Tasks = append(page.Tasks, shown(t))
		}
	}
	if page.Missing, page.Through = c.missing, true; len(c.missing) > 0 {
		page.Cursor = "!" // before all ids
	}
	return page, nil
}

// Change lets a task that is retried fail again at once, and refuses what is no longer as it was seen.
func (c *cluster) Change(ctx context.Context, seen *task.Task, to task.Operation, reason string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.refuses[seen.ID]; err != nil {
		if full, overloaded := errors.AsType[*task.OverloadError](err); overloaded && full.Cause == "once" {
			delete(c.refuses, seen.ID)
		}
		return err
	}
	t := c.tasks[seen.ID]
	if t == nil || ctx.Err() != nil {
		return cmp.Or(ctx.Err(), task.ErrNotFound)
	}
	if c.busy[t.ID] > 0 {
		c.busy[t.ID]--
		c.touch(t)
	}
	if t.Last != seen.Version.Ref {
		return &task.StateError{Task: seen.ID, Problem: "it has changed", Changed: true}
	}
	c.changes[t.ID] = append(c.changes[t.ID], strings.TrimSpace(to.String()+" "+reason))
	c.touch(t)
	switch to {
	case task.Cancel:
		if t.Cancelled = t.OnNode(); !t.Cancelled {
			t.Status, t.Due = task.Failure, 0
		}
	case task.Delete:
		delete(c.tasks, t.ID)
	}
	if c.made++; c.after != nil {
		c.after(c.made)
	}
	return nil
}

func (c *cluster) GetLinear(_ context.Context, id events.TaskID) (t task.Task, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.tasks[id] == nil {
		return t, task.ErrNotFound
	}
	return shown(c.tasks[id]), nil
}

// touch gives a task another event.
func (c *cluster) touch(t *projection.Task) {
	c.head++
	t.Last = events.RefOf(c.head, 0)
}

// last goes through all reports, and returns the last one.
func last(t *testing.T, c *cluster, f task.Filter, op task.Operation, o bulk.Options) (r bulk.Report) {
	t.Helper()
	for report, err := range bulk.Each(t.Context(), c, f, op, o) {
		if r = report; err != nil {
			t.Fatal(err)
		}
	}
	return r
}

func TestEach_DoesTheOperationWithAllThatMatchAndCountsWhatBecameOfThem(t *testing.T) {
	const n = 5000
	failed, waiting := task.Filter{Status: task.Failure}, task.Filter{Status: task.Created}
	for op, row := range map[task.Operation]struct {
		f    task.Filter
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
			c.refuses[some[3]] = &task.OverloadError{Cause: "once", RetryAfter: time.Millisecond}
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

// The process ends somewhere in the midst of a page, again and again, and goes on with the last cursor that it has
// told.
func TestEach_ResumedWhereItWasKilledRetriesEachTaskOnce(t *testing.T) {
	const n = 10_000
	c := newCluster(n)
	f, cursor, died := task.Filter{Status: task.Failure}, "", 0
	for over := false; !over; {
		ctx, kill := context.WithCancelCause(t.Context())
		until := c.made + 777
		c.after = func(made int) {
			if made == until {
				kill(errors.New("killed"))
			}
		}
		over = true
		for r, err := range bulk.Each(ctx, c, f, task.Retry, bulk.Options{Cursor: cursor}) {
			if err != nil { // what it tells now, nobody hears
				over, died = false, died+1
				break
			}
			cursor = r.Cursor
		}
		kill(nil)
	}
	for id, got := range c.tasks {
		want := 0
		if got.Status == task.Failure {
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

// A task that has another event since the operation began, before its page was listed or after, is left as it is.
func TestEach_LeavesATaskThatHasChangedSince(t *testing.T) {
	c := newCluster(2000)
	others := []events.TaskID{"t000000", "t001800"} // of the last page, of the first one
	c.listed = func(pages int) {
		if pages == 1 {
			for _, id := range others {
				c.touch(c.tasks[id])
			}
		}
	}
	r := last(t, c, task.Filter{Status: task.Failure}, task.Retry, bulk.Options{})
	if r.Matched != 1000 || r.Changed+r.Left != r.Matched || r.Left != 2 || len(r.Problems) > 0 {
		t.Errorf("%+v", r)
	}
	for _, id := range others {
		if len(c.changes[id]) > 0 {
			t.Errorf("task %s was changed: %q", id, c.changes[id])
		}
	}
}

// The outcome of one change is unknown: the cursor leads back to its task, although later pages are done.
func TestEach_GoesOnBeforeWhatHasFailed(t *testing.T) {
	c := newCluster(5000)
	const lost = "t003000"
	c.refuses[lost] = task.ErrUnknown
	r := last(t, c, task.Filter{Status: task.Failure}, task.Retry, bulk.Options{})
	if r.Changed != 2499 || r.Failed != 1 || r.Cursor == "" {
		t.Fatalf("%+v", r)
	}
	delete(c.refuses, lost)
	r = last(t, c, task.Filter{Status: task.Failure}, task.Retry, bulk.Options{Cursor: r.Cursor})
	if r.Changed != 1 || r.Changed+r.Left != r.Matched || r.Cursor != "" || len(c.changes[lost]) != 1 {
		t.Errorf("resumed: %+v, and it was changed %d times", r, len(c.changes[lost]))
	}
}

// Resumed where not even a page can be listed, it is where it was.
func TestEach_WhoseFirstPageCannotBeListedGoesOnWhereItWas(t *testing.T) {
	c := newCluster(5000)
	f, cursor := task.Filter{Status: task.Failure}, ""
	for r := range bulk.Each(t.Context(), c, f, task.Retry, bulk.Options{}) {
		if cursor = r.Cursor; r.Changed > 0 {
			break
		}
	}
	c.lost = store.ErrUnavailable
	reports := 0
	for r, err := range bulk.Each(t.Context(), c, f, task.Retry, bulk.Options{Cursor: cursor}) {
		if reports++; !errors.Is(err, store.ErrUnavailable) || r.Cursor != cursor || cursor == "" {
			t.Errorf("%v, cursor %q, want %q", err, r.Cursor, cursor)
		}
	}
	c.lost = nil
	if r := last(t, c, f, task.Retry, bulk.Options{Cursor: cursor}); reports != 1 || r.Cursor != "" || len(c.changes) != 2500 {
		t.Errorf("after %d reports: %+v, %d tasks were changed", reports, r, len(c.changes))
	}
}

// A dry run counts what a real one would do, and changes nothing.
func TestEach_DryRunCountsWhatARealOneChanges(t *testing.T) {
	c := newCluster(3000)
	f := task.Filter{Status: task.Failure}
	dry := last(t, c, f, task.Retry, bulk.Options{DryRun: true})
	if len(c.changes) > 0 {
		t.Fatalf("it has changed %d tasks", len(c.changes))
	}
	done := last(t, c, f, task.Retry, bulk.Options{})
	if dry.Matched != done.Changed || dry.Matched != 1500 || len(dry.Rows) != 1 || dry.Rows[0] != done.Rows[0] {
		t.Errorf("dry run %+v, real one %+v", dry, done)
	}
}

// There is no room for any task: it ends after the first page, and the cursor goes on with that.
func TestEach_EndsWhenThereIsNoRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(5000)
		for id := range c.tasks {
			c.refuses[id] = &task.OverloadError{Cause: "the store is almost full", RetryAfter: time.Second}
		}
		f, cursor, ended := task.Filter{Status: task.Failure}, "", error(nil)
		for r, err := range bulk.Each(t.Context(), c, f, task.Retry, bulk.Options{}) {
			cursor, ended = r.Cursor, err
		}
		if _, overloaded := errors.AsType[*task.OverloadError](ended); !overloaded || c.pages != 1 || cursor == "" {
			t.Fatalf("after %d pages it ends with %v, cursor %q", c.pages, ended, cursor)
		}
		clear(c.refuses)
		if r := last(t, c, f, task.Retry, bulk.Options{Cursor: cursor}); r.Changed != 2500 || r.Cursor != "" {
			t.Errorf("when there is room again: %+v", r)
		}
	})
}

// Nobody answers for a shard: it waits, and tells so.
func TestEach_WaitsForAShardThatIsSilent(t *testing.T) {
	c := newCluster(10)
	c.missing = []task.Missing{{Shard: 3, Err: errors.New("nobody has answered in time"), Silent: true}}
	reports := 0
	for r, err := range bulk.Each(t.Context(), c, task.Filter{}, task.RunNow, bulk.Options{}) {
		if reports++; err != nil {
			t.Fatal(err)
		}
		switch reports {
		case 1: // before anything is changed
		case 2, 3, 4:
			if len(r.Missing) != 1 || r.Cursor == "" {
				t.Fatalf("while a shard is silent: %+v", r)
			}
			if reports == 4 {
				c.missing = nil
			}
		default:
			if len(r.Missing) > 0 || r.Changed != 10 || r.Cursor != "" {
				t.Errorf("at the end: %+v", r)
			}
		}
	}
	if reports != 5 {
		t.Errorf("%d reports", reports)
	}
}

func TestEach_NamesWhatIsMissing(t *testing.T) {
	c := newCluster(10)
	c.missing = []task.Missing{{Shard: 3, Err: errors.New("shard 3 is quarantined")}}
	var r bulk.Report
	var ended error
	for r, ended = range bulk.Each(t.Context(), c, task.Filter{}, task.Retry, bulk.Options{DryRun: true}) {
	}
	if !errors.Is(ended, store.ErrUnavailable) || len(r.Missing) != 1 || r.Matched != 10 || r.Cursor == "" {
		t.Errorf("%+v, %v; want the tasks, what is missing, and a cursor", r, ended)
	}
}

func TestEach_OfNoOperationAsksNobody(t *testing.T) {
	for _, op := range []task.Operation{task.OperationCount, 77} {
		for r, err := range bulk.Each(t.Context(), nil, task.Filter{}, op, bulk.Options{}) {
			if invalid, is := errors.AsType[*store.InvalidError](err); !is || invalid.Field != "operation" || r.Matched != 0 {
				t.Errorf("%s: %+v, %v", op, r, err)
			}
		}
	}
}

// A cursor goes on with the operation, filter and cluster that it is of, and with the session of a node that has ended
// since.
func TestEach_TakesNoCursorOfAnother(t *testing.T) {
	const session = "worker-abcdefghij"
	failed := task.Filter{Status: task.Failure, Node: session}
	cursorOf := func(o bulk.Options) string {
		for r, err := range bulk.Each(t.Context(), newCluster(10), failed, task.Retry, o) {
			if err != nil {
				t.Fatal(err)
			}
			if r.Cursor != "" {
				return r.Cursor
			}
		}
		return ""
	}
	told := cursorOf(bulk.Options{})
	elsewhere := newCluster(10)
	elsewhere.name = "other"
	later := message.Encode(struct { // a later version, with other fields after the version number
		Version uint64
		Other   string
	}{9, "y"})
	later = binary.BigEndian.AppendUint32(later, crc32.ChecksumIEEE(later))
	larger := newCluster(10)
	larger.more = 1
	for want, row := range map[string]struct {
		c      *cluster
		f      task.Filter
		to     task.Operation
		cursor string
		dry    bool
	}{
		"it is none of a bulk operation":      {newCluster(10), failed, task.Retry, "x", false},
		"operation, or was altered":           {newCluster(10), failed, task.Retry, "A" + told[1:], false},
		"40000 bytes exceed the limit":        {newCluster(10), failed, task.Retry, strings.Repeat("A", 40_000), false},
		"it is of another operation":          {newCluster(10), failed, task.Delete, told, false},
		"it is of a dry run, or this is one":  {newCluster(10), failed, task.Retry, told, true},
		"it is of another filter":             {newCluster(10), task.Filter{Status: task.Success, Node: session}, task.Retry, told, false},
		"of another filter":                   {newCluster(10), task.Filter{Status: task.Failure, Node: "other"}, task.Retry, told, false},
		"it is of another cluster":            {elsewhere, failed, task.Retry, told, false},
		"of 1 shards, this one has 2":         {larger, failed, task.Retry, told, false},
		"it is of version 9, this program re": {newCluster(10), failed, task.Retry, base64.RawURLEncoding.EncodeToString(later), false},
	} {
		refused := false
		for _, err := range bulk.Each(t.Context(), row.c, row.f, row.to, bulk.Options{Cursor: row.cursor, DryRun: row.dry}) {
			refused = true
			if invalid, ok := errors.AsType[*store.InvalidError](err); !ok || invalid.Field != "cursor" || !strings.Contains(invalid.Problem, want) {
				t.Errorf("%v, want the cursor refused with %q", err, want)
			}
		}
		if !refused {
			t.Errorf("nothing is told, want %q", want)
		}
		if len(row.c.changes) > 0 {
			t.Errorf("%s: something was changed", want)
		}
	}
	for _, node := range []string{session, "worker"} {
		c := newCluster(10)
		for _, err := range bulk.Each(t.Context(), c, task.Filter{Status: task.Failure, Node: node}, task.Retry, bulk.Options{Cursor: told}) {
			if err != nil {
				t.Errorf("node %s: %v", node, err)
			}
		}
		if c.node != session || len(c.changes) != 5 {
			t.Errorf("node %s: asked for the tasks of %q, %d changed", node, c.node, len(c.changes))
		}
	}
}
