package collections_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"taskledger/behaviors"
	"taskledger/collections/taskjson"
	"taskledger/events"
	"taskledger/internal/testcluster"
	"taskledger/internal/testkit"
	"taskledger/schedule"
	"taskledger/task"
)

// numbered returns a file of collections c0, c1 and so on.
func numbered(n int) string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("{name: c%d}", i)
	}
	return "sources: {my_shop: {driver: 'go:held', collections: [" + strings.Join(names, ", ") + "]}}"
}

// order asks for a run of a collection by its number, of the priority of ticks if the base is 0, and returns its id.
func (w *world) order(collection int, base int64) events.TaskID {
	w.Helper()
	f, err := w.nodes[0].Client.Schedules().RunWith(w.within(), fmt.Sprintf("my_shop_c%d", collection),
		schedule.ByHand{Priority: base}, 0)
	w.must(err)
	f.Close()
	return f.ID()
}

// list counts the runs that are listed with a status.
func (w *world) list(status taskjson.Status) int {
	w.Helper()
	const all = "/tasks?source=my_shop&start=1970-01-01T00:00:00Z&end=9999-12-31T23:59:59Z&status="
	return strings.Count(w.ask(0, sam, "GET", all+string(status)).text, `"id":`)
}

func TestWorkers_OfSeventeenRunsOneWaitsAndARequestPassesTicks(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 8, "a")
	w.set(numbered(workers + 3))
	var first []*run
	for i := range workers + 1 {
		w.order(i, 0)
	}
	for range workers {
		first = append(first, w.next())
	}
	if running, waiting := w.list(taskjson.Running), w.list(taskjson.Scheduled); running != workers || waiting != 1 {
		t.Errorf("%d run and %d wait, want %d and 1", running, waiting, workers)
	}
	w.order(workers+1, 0)
	asked := w.ask(0, sam, "POST", fmt.Sprintf("/tasks?source=my_shop&collection=c%d", workers+2))
	if is := w.ask(0, sam, "GET", "/tasks/"+asked.TaskID); is.Priority != 300e12-int64(is.CreatedAt)/1000 {
		t.Errorf("%s", is.text)
	}
	for i, want := range []int{workers + 2, workers, workers + 1} {
		first[i].ends <- nil
		if r := w.next(); r.collection != fmt.Sprint("c", want) {
			t.Errorf("run %d to pass is of %s, want c%d", i+1, r.collection, want)
		} else {
			r.ends <- nil
			w.show(shown(t, r), taskjson.Success)
		}
	}
	for _, r := range first[3:] {
		r.ends <- nil
	}
	if most := w.most.Load(); most != workers {
		t.Errorf("%d runs at once, want %d", most, workers)
	}
}

// shown returns the id of a run as callers see it.
func shown(t *testing.T, r *run) string {
	t.Helper()
	id, err := taskjson.Shown(r.attempt.Task)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// Runs that wait start by their base, then by when they became ready, then by their creation, whichever of the shards
// of the node they are in.
func TestWorkers_TakeRunsByBaseThenAgeOverAllShards(t *testing.T) {
	t.Parallel()
	testkit.Busy(t)
	const waiting = 40
	bases := []int64{200, 1, 300, events.MaxPriority, 201}
	w := newWorld(t, 16, "a")
	w.set(numbered(workers + waiting))
	for i := range workers {
		w.order(i, 0)
	}
	var first []*run
	for range workers {
		first = append(first, w.next())
	}
	for i := range waiting {
		w.order(workers+i, bases[i%len(bases)])
	}
	// It was created before all that wait, and is ready after them.
	first[0].ends <- behaviors.RetryAfter(time.Millisecond, errors.New("once more"))
	retried := first[0].attempt.Task
	replaces := w.next()
	began := []task.Task{w.get(replaces.attempt.Task)}
	testcluster.Await(t, "the retry is ready", func() bool { return w.get(retried).Substatus == task.SubReady })
	for range waiting {
		replaces.ends <- nil
		replaces = w.next()
		began = append(began, w.get(replaces.attempt.Task))
	}
	for _, r := range append(first[1:], replaces) {
		r.ends <- nil
	}
	for i, is := range began {
		if i == 0 {
			continue
		}
		was := began[i-1]
		switch {
		case was.Priority != is.Priority:
			if was.Priority < is.Priority {
				t.Errorf("start %d is of base %d, after one of %d", i, is.Priority, was.Priority)
			}
		case was.ID == retried || is.ID != retried && was.CreatedAt > is.CreatedAt:
			t.Errorf("start %d, %s of %d ms, comes after %s of %d ms", i, is.ID, is.CreatedAt, was.ID, was.CreatedAt)
		}
	}
	if at := slices.IndexFunc(began, func(is task.Task) bool { return is.ID == retried }); at < 1 {
		t.Errorf("the retry is start %d", at)
	}
}

// get returns a run.
func (w *world) get(id events.TaskID) task.Task {
	w.Helper()
	is, err := w.nodes[0].Client.Get(w.within(), id)
	w.must(err)
	return is
}
