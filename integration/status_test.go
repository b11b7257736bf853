package integration_test

import (
	"testing"
	"time"

	"taskledger/behaviors"
	"taskledger/events"
	"taskledger/internal/testcluster"
	"taskledger/task"
)

// stamps says which fields of a task are there.
type stamps struct {
	status                                task.Status
	schedule, started, recheck, lost      bool
	onNode, result, failure, afterStarted bool
}

func stampsOf(t task.Task) stamps {
	return stamps{t.Status, t.ScheduleNotBefore != 0, t.StartedAt != 0, t.RecheckNotBefore != 0, t.LostNotBefore != 0,
		t.OnNode(), t.Result != nil, t.Error != nil, t.LostNotBefore == 0 || t.LostNotBefore >= t.StartedAt}
}

func TestStatus_ShowsTheStampsThatMustBeThereAndNoOthers(t *testing.T) {
	withAndWithoutNATS(t, func(t *testing.T, c *testcluster.Cluster) {
		w := defineWork("work", &behaviors.Rules[string, string]{TaskID: idFromParams,
			AfterSuccess: func(p, _ string, now time.Time) time.Time {
				if p == "recurring" {
					return now.Add(time.Hour)
				}
				return time.Time{}
			}})
		n := c.StartNode("a", nil, w.on("a"))
		client := c.StartClient("reader", nil)
		see := func(params string, o task.SubmitOptions, act func(r *run), status task.Status, expect stamps) {
			t.Helper()
			w.submitWith(t, client, params, o)
			if act != nil {
				act(w.next(t))
			}
			expect.status, expect.afterStarted = status, true
			task := awaitTask(t, client, idFromParams(params), "is "+status.String(), func(task task.Task) bool {
				return task.Status == status && task.OnNode() == expect.onNode
			})
			if got := stampsOf(task); got != expect {
				t.Errorf("%s: %+v, want %+v", params, got, expect)
			}
		}
		see("waiting", inAnHour(), nil, task.Created, stamps{schedule: true})
		see("running", task.SubmitOptions{}, func(*run) {}, task.Running, stamps{started: true, recheck: true, lost: true, onNode: true})
		see("snoozed", task.SubmitOptions{}, func(r *run) { r.fail(behaviors.Snooze(time.Hour)) }, task.Running, stamps{started: true, recheck: true, lost: true})
		see("succeeded", task.SubmitOptions{}, func(r *run) { r.succeed("done") }, task.Success, stamps{started: true, result: true})
		see("recurring", task.SubmitOptions{}, func(r *run) { r.succeed("done") }, task.Success, stamps{started: true, result: true, schedule: true})
		see("failed", task.SubmitOptions{}, func(r *run) { r.fail(behaviors.Cancel(errNoLuck)) }, task.Failure, stamps{started: true, failure: true})
		see("retried", task.SubmitOptions{}, func(r *run) { r.fail(behaviors.RetryAfter(time.Hour, errNoLuck)) }, task.Failure, stamps{started: true, failure: true, schedule: true})
		ok(t, n.Operations().Cancel(within(t, soon), "waiting", ""))
		found := awaitTask(t, client, "waiting", "is cancelled", func(task task.Task) bool { return task.Final() })
		if got, want := stampsOf(found), (stamps{status: task.Failure, failure: true, afterStarted: true}); got != want {
			t.Errorf("cancelled: %+v, want %+v", got, want)
		}
	})
}

// lease returns the lease of an attempt, two thirds of which lie between the two stamps.
func lease(t *task.Task) events.Millis { return (t.LostNotBefore - t.RecheckNotBefore) * 3 / 2 }

// An attempt that is longer than a lease is no lost one: while its node is there both stamps are still to come. What
// was recorded of it does not change.
func TestStatus_StampsOfALongAttemptMoveOnWithItsNode(t *testing.T) {
	withTTL(t, 12*time.Second, func(t *testing.T, c *testcluster.Cluster) { // which a busy machine does not use up
		w := defineWork("work", &behaviors.Rules[string, string]{TaskID: idFromParams})
		owner := c.StartNode("owner", noSlots)
		c.StartNode("worker", noShards, w.on("worker"))
		f := w.submit(t, owner, "x")
		r := w.next(t)
		task := awaitTask(t, owner, "x", "is served with stamps to come after its lease", func(task task.Task) bool {
			now := events.MillisOf(time.Now())
			return now > task.StartedAt+lease(&task) && task.RecheckNotBefore > now && task.LostNotBefore > now
		})
		then, err := owner.Ledger().StateAt(within(t, soon), "x", time.Now())
		if err != nil || then.LostNotBefore != task.StartedAt+lease(&task) || then.Details.Started != task.Details.Started {
			t.Errorf("recorded with the lost stamp %d, %v; want a lease after the start at %d", then.LostNotBefore, err, task.StartedAt)
		}
		r.succeed("done")
		want(t, f, "done")
	})
}
