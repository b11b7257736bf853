package integration_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"taskledger/behaviors"
	"taskledger/events"
	"taskledger/internal/testcluster"
	"taskledger/internal/testkit"
	"taskledger/schedule"
	"taskledger/task"
)

// echoes is a behavior whose results are its parameters, of which a shard keeps so many tasks.
func echoes(id string, retain int) task.Behavior {
	of := behaviors.Define(id, &behaviors.Rules[int, int]{Policy: task.Policy{RetainCount: retain}})
	return of.Bind(func(_ context.Context, p int) (int, error) { return p, nil })
}

// listed returns the runs of a schedule that are listed, in the order of their ids.
func listed(t *testing.T, n *testcluster.Node, of string) (ids []events.TaskID) {
	t.Helper()
	for _, is := range pages(t, n.Client, task.Filter{Affinity: of}, func(task.Page) {}) {
		ids = append(ids, is.ID)
	}
	slices.Sort(ids)
	return ids
}

// The newest runs of a schedule stay listed, as many as it keeps, while so many other tasks of the shard finish that
// retention forgets them.
func TestSchedules_TheNewestRunsStayListedWhileManyOthersFinish(t *testing.T) {
	t.Parallel()
	testkit.Busy(t)
	const (
		name    = "each-minute"
		filled  = 150 // ticks
		atOnce  = 500
		few     = 10
		patient = 4 * soon // for all others
	)
	others := testkit.Times(3000, 200_000)
	both := []task.Behavior{
		echoes("quick", few),
		echoes("other", max(others/2, few)),
	}
	n := testcluster.New(t, testcluster.Options{Shards: 1}).StartNode("a", nil, both...)
	all := n.Client.Schedules()
	d := schedule.Definition{Cron: "0 * * * * ?", Behavior: "quick", Params: []byte("1")}
	_, _, err := all.Set(within(t, soon), name, d, 0)
	ok(t, err)
	ok(t, all.Pause(within(t, soon), name, "its runs are those of a backfill", 0))
	to := time.Now().Truncate(time.Minute)
	ticks, err := all.Backfill(within(t, soon), name, to.Add(-(filled-1)*time.Minute), to, 0)
	if err != nil || ticks != filled {
		t.Fatalf("backfill of %d ticks, %v", ticks, err)
	}
	testcluster.Await(t, "the end of the backfill", func() bool {
		is, err := all.GetLinear(within(t, soon), name)
		ok(t, err)
		return is.Fill == nil && is.Active == 0
	})
	var newest []events.TaskID
	for i := range schedule.DefaultKeep {
		tick := to.Add(-time.Duration(i) * time.Minute)
		newest = append(newest, events.TaskID(fmt.Sprintf("%s/fill:%d", name, tick.UnixMilli())))
	}
	slices.Sort(newest)
	// Of the others retention has left some.
	if got := listed(t, n, name); len(got) != len(newest)+few || !slices.Equal(got[few:], newest) {
		t.Fatalf("runs %v are listed after the backfill, want the newest %d and %d others", got, len(newest), few)
	}
	ctx := within(t, patient)
	for i := 0; i < others; i += atOnce {
		requests := make([]task.Request, min(atOnce, others-i))
		for k := range requests {
			requests[k] = task.Request{Behavior: both[k%2], Params: fmt.Append(nil, i+k)}
		}
		for _, r := range n.SubmitMany(ctx, requests, task.ManyOptions{}) {
			if _, err := r.Wait(ctx); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got := listed(t, n, name); !slices.Equal(got, newest) {
		t.Errorf("runs %v are listed after %d other tasks, want the newest %d", got, others, len(newest))
	}
	counts, err := n.Counts(within(t, soon), "quick")
	ok(t, err)
	quick := int64(0)
	for _, row := range counts.Rows {
		quick += row.Tasks
	}
	if want := int64(schedule.DefaultKeep + few); quick != want {
		t.Errorf("%d tasks of the behavior are there, want %d", quick, want)
	}
}
