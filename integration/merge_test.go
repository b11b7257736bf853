package integration_test

import (
	"strings"
	"testing"
	"time"

	"taskledger/behaviors"
	"taskledger/events"
	"taskledger/internal/testcluster"
	"taskledger/task"
)

// defineMerging is work whose parameters are "id:letters"; submits that meet join their letters.
func defineMerging(existing events.Existing) *work {
	return defineWork("merging", &behaviors.Rules[string, string]{
		Policy: task.Policy{Existing: existing, MaxAttempts: 1},
		TaskID: func(p string) events.TaskID {
			id, _, _ := strings.Cut(p, ":")
			return events.TaskID(id)
		},
		Merge: func(stored, requested string) string {
			_, letters, _ := strings.Cut(requested, ":")
			return stored + letters
		},
	})
}

func TestMerge_IntoAWaitingTaskChangesItsParameters(t *testing.T) {
	withAndWithoutNATS(t, func(t *testing.T, c *testcluster.Cluster) {
		w := defineMerging(events.ReturnRecorded)
		n := c.StartNode("a", nil, w.on("a"))
		client := c.StartClient("caller", nil)
		first := w.submitWith(t, n, "x:a", inAnHour())
		second := w.submitWith(t, client, "x:b", inAnHour())
		third := w.submit(t, client, "x:c")
		r := w.next(t)
		if r.params != "x:abc" {
			t.Errorf("parameters %s, want x:abc", r.params)
		}
		r.succeed("done")
		for _, f := range []*behaviors.Future[string]{first, second, third} {
			want(t, f, "done")
		}
		w.nothing(t)
	})
}

func TestMerge_IntoARunningTaskIsForAFurtherRun(t *testing.T) {
	withAndWithoutNATS(t, func(t *testing.T, c *testcluster.Cluster) {
		w := defineMerging(events.ReturnRecorded)
		n := c.StartNode("a", nil, w.on("a"))
		first := w.submit(t, n, "x:a")
		running := w.next(t)
		second, third := w.submit(t, n, "x:b"), w.submit(t, n, "x:c")
		running.succeed("1")
		want(t, first, "1")
		pending(t, second)
		r := w.next(t)
		if r.params != "x:abc" {
			t.Errorf("parameters %s, want x:abc", r.params)
		}
		r.succeed("2")
		want(t, second, "2")
		want(t, third, "2")
		w.nothing(t)
	})
}

func TestMerge_WithAFinalTaskFollowsThePolicy(t *testing.T) {
	withAndWithoutNATS(t, func(t *testing.T, c *testcluster.Cluster) {
		again := defineMerging(events.RunAgain)
		n := c.StartNode("a", nil, again.on("a"))
		first := again.submit(t, n, "x:a")
		again.next(t).succeed("1")
		want(t, first, "1")
		second := again.submit(t, n, "x:b")
		r := again.next(t)
		if r.params != "x:ab" {
			t.Errorf("parameters %s, want x:ab", r.params)
		}
		r.succeed("2")
		want(t, second, "2")

		recorded := defineMerging(events.ReturnRecorded)
		want(t, recorded.submit(t, n, "x:c"), "2")
		again.nothing(t)
		if task := awaitTask(t, n, "x", "stays", func(task task.Task) bool { return task.Final() }); task.Runs != 2 {
			t.Errorf("%d runs, want 2", task.Runs)
		}
	})
}

func TestMerge_OfARawSubmitIsMadeByANodeThatHasTheCode(t *testing.T) {
	withAndWithoutNATS(t, func(t *testing.T, c *testcluster.Cluster) {
		w := defineMerging(events.ReturnRecorded)
		n := c.StartNode("a", nil, w.on("a"))
		client := c.StartClient("caller", nil)
		first := w.submitWith(t, n, "x:a", inAnHour())
		submitRaw(t, client.Client, "merging", `"x:b"`, task.SubmitOptions{NotBefore: time.Now()})
		r := w.next(t)
		if r.params != "x:ab" {
			t.Errorf("parameters %s, want x:ab", r.params)
		}
		r.succeed("done")
		want(t, first, "done")
	})
}
