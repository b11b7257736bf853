package bulk_test

import (
	"context"
	"errors"
	"testing"

	"taskledger/bulk"
	"taskledger/events"
	"taskledger/projection"
	"taskledger/task"
)

// running lets the tasks that wait run, and make so many events, each just before a change of the task.
func (c *cluster) running(reports int) {
	c.busy = map[events.TaskID]int{}
	for id, t := range c.tasks {
		if t.Status == task.Created {
			t.Status, t.Node = task.Running, "n-1"
			c.busy[id] = reports
		}
	}
}

// Tasks that report progress all the time are cancelled, each once, though the operation is killed again and again and
// goes on by its cursor.
func TestEach_CancelsTasksThatReportProgressAllTheTime(t *testing.T) {
	c := newCluster(4000)
	c.running(3)
	f, cursor, died := task.Filter{Status: task.Running}, "", 0
	for over := false; !over; {
		ctx, kill := context.WithCancelCause(t.Context())
		until := c.made + 555
		c.after = func(made int) {
			if made == until {
				kill(errors.New("killed"))
			}
		}
		c.listed = func(int) { // every task makes an event between all pages, too
			for _, task := range c.tasks {
				if task.OnNode() {
					c.touch(task)
				}
			}
		}
		over = true
		for r, err := range bulk.Each(ctx, c, f, task.Cancel, bulk.Options{Cursor: cursor}) {
			if err != nil { // what it tells now, nobody hears
				over, died = false, died+1
				break
			}
			cursor = r.Cursor
		}
		kill(nil)
	}
	for id, task := range c.tasks {
		if task.OnNode() && (!task.Cancelled || len(c.changes[id]) != 1) {
			t.Fatalf("task %s: %d changes, cancelled %t", id, len(c.changes[id]), task.Cancelled)
		}
	}
	if died < 3 {
		t.Errorf("it was killed %d times", died)
	}
}

// What is not the task that was listed any more, or needs no cancel, is left; so is one that has another event each
// time.
func TestEach_CancelLeavesWhatMatchesNoMore(t *testing.T) {
	later := func(c *cluster, t *projection.Task) { c.touch(t) }
	for name, change := range map[string]func(c *cluster, t *projection.Task){
		"of another node":  func(c *cluster, t *projection.Task) { later(c, t); t.Node = "n-2" },
		"of a new life":    func(c *cluster, t *projection.Task) { later(c, t); t.Created = t.Last },
		"ended":            func(c *cluster, t *projection.Task) { later(c, t); t.Status, t.Node, t.Due = task.Success, "", 0 },
		"cancelled":        func(c *cluster, t *projection.Task) { later(c, t); t.Cancelled = true },
		"changed all time": func(c *cluster, t *projection.Task) { c.busy[t.ID] = 1000 },
	} {
		c := newCluster(100)
		c.running(0)
		id, other := events.TaskID("t000051"), events.TaskID("t000053")
		c.busy[other] = 1
		c.listed = func(int) { change(c, c.tasks[id]) }
		r := last(t, c, task.Filter{Status: task.Running, Node: "n-1"}, task.Cancel, bulk.Options{})
		if r.Left != 1 || r.Changed != 49 || len(c.changes[id]) > 0 || !c.tasks[other].Cancelled {
			t.Errorf("%s: %+v, changes %q", name, r, c.changes[id])
		}
	}
}

// Only a cancel looks again: what is retried, deleted or started twice would be another thing.
func TestEach_OfOtherOperationsLeavesTasksThatReportProgress(t *testing.T) {
	for _, op := range []task.Operation{task.Retry, task.RunNow, task.Delete, task.Suspend} {
		c := newCluster(100)
		c.running(1)
		r := last(t, c, task.Filter{Status: task.Running}, op, bulk.Options{})
		if r.Left != 50 || r.Changed > 0 || len(c.changes) > 0 {
			t.Errorf("%s: %+v", op, r)
		}
	}
}

// late is a cluster without entries, in which a task is created after the first page.
type late struct{ *cluster }

func (c late) ListPage(ctx context.Context, f task.Filter, cursor string) (task.Page, error) {
	if cursor == "" {
		return task.Page{Nexts: []uint64{1}, Cluster: c.name, Cursor: "~"}, nil
	}
	made := &projection.Task{ID: "made", Kind: &projection.Kind{Behavior: "work"}, Status: task.Created, Due: 1}
	c.touch(made)
	made.Created, c.tasks[made.ID] = made.Last, made
	return c.cluster.ListPage(ctx, f, cursor)
}

// A shard without entries is heard as well: a task that is created there after the operation began is left.
func TestEach_LeavesATaskOfAShardThatWasEmptyWhenItBegan(t *testing.T) {
	for _, op := range []task.Operation{task.Cancel, task.Delete} {
		c := newCluster(0)
		c.head = 0
		var r bulk.Report
		for report, err := range bulk.Each(t.Context(), late{c}, task.Filter{}, op, bulk.Options{}) {
			if r = report; err != nil {
				t.Fatal(err)
			}
		}
		if r.Left != 1 || r.Changed > 0 || len(c.changes) > 0 {
			t.Errorf("%s: %+v", op, r)
		}
	}
}
