package works_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"taskledger/api"
	"taskledger/api/operations"
	"taskledger/api/works"
	"taskledger/behaviors"
	"taskledger/internal/testcluster"
	"taskledger/task"
	"taskledger/work"
	"taskledger/work/progress"
	"taskledger/work/segmentation"
)

// numbers yields the numbers of a bucket.
func numbers(_ context.Context, _ struct{}, b work.Bucket) iter.Seq2[int64, error] {
	return func(yield func(int64, error) bool) {
		for n := b.From; n < b.To && yield(n, nil); n++ {
		}
	}
}

// cluster is a node that runs a work over the numbers below 100, in ten buckets, after one that only counts them.
type cluster struct {
	*server
	node *testcluster.Node
	def  *work.Work[struct{}, int64]
}

func newCluster(t *testing.T, process func(ctx context.Context, n int64) error, thresholds ...work.Threshold) *cluster {
	t.Helper()
	hundred := work.Partition[struct{}, int64]{
		ID:           "look",
		Mode:         work.DryRun,
		Items:        numbers,
		Segmentation: segmentation.Plan{Kind: segmentation.Numeric, To: 100, Buckets: 4},
	}
	apply := hundred
	apply.ID, apply.Mode, apply.Process, apply.Workers, apply.Thresholds = "apply", work.Full, process, 3, thresholds
	apply.Segmentation.Buckets = 10
	apply.Count = func(context.Context, struct{}) (int64, error) { return 100, nil }
	return newClusterOf(t, work.Define("numbers", nil, hundred, apply))
}

func newClusterOf(t *testing.T, def *work.Work[struct{}, int64]) *cluster {
	t.Helper()
	node := testcluster.New(t, testcluster.Options{NoNATS: true, Shards: 2}).StartNode("a", nil, def)
	client := operations.Direct{Client: node.Client}
	a, err := api.New(api.Config{Client: client, Tokens: everybody, Routes: works.Routes(client.Works())})
	if err != nil {
		t.Fatal(err)
	}
	return &cluster{
		server: &server{t: t, api: a},
		node:   node,
		def:    def,
	}
}

func (c *cluster) submit(ctx context.Context, id task.SubmitOptions) *behaviors.Future[work.Result] {
	c.t.Helper()
	f, err := c.def.Submit(ctx, c.node.Client, struct{}{}, id)
	if err != nil {
		c.t.Fatal(err)
	}
	return f
}

// report asks for the work until it is as it should be.
func (c *cluster) report(is func(*progress.Work) bool) (w progress.Work) {
	c.t.Helper()
	for { // until the time of the test is over
		code, text := c.exchange("viewer", "GET", "t1.n~1/work", "")
		w = progress.Work{}
		if code == 200 {
			if err := json.Unmarshal([]byte(text), &w); err != nil {
				c.t.Fatalf("%v: %s", err, text)
			}
		}
		if code == 200 && is(&w) {
			return w
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// failures reads all pages.
func (c *cluster) failures(limit int) (all []progress.Failures, last progress.FailurePage) {
	c.t.Helper()
	for cursor, pages := "", 0; ; cursor, pages = last.Cursor, pages+1 {
		if pages > 100 {
			c.t.Fatalf("the pages go on with %s", cursor)
		}
		path := fmt.Sprintf("t1.n~1/work/errors?limit=%d&cursor=%s", limit, cursor)
		last = progress.FailurePage{}
		if err := json.Unmarshal([]byte(c.send("viewer", "GET", path, "", 200, "")), &last); err != nil {
			c.t.Fatal(err)
		}
		if len(last.Buckets) > limit {
			c.t.Errorf("%d buckets in a page of %d", len(last.Buckets), limit)
		}
		if all = append(all, last.Buckets...); last.Cursor == "" {
			return all, last
		}
	}
}

func TestCluster_TellsErrorsByPagesAndRunsFailedBucketsAgain(t *testing.T) {
	t.Parallel()
	var mended atomic.Bool
	c := newCluster(t, func(_ context.Context, n int64) error {
		if n%30 < 3 && !mended.Load() {
			return behaviors.Code("odd", fmt.Errorf("number %d", n), nil)
		}
		return nil
	})
	ctx := t.Context()
	f := c.submit(ctx, task.SubmitOptions{ID: "t1.n/1"})
	if _, err := f.Wait(ctx); err != nil {
		t.Fatal(err)
	}
	w := c.report(func(w *progress.Work) bool { return w.Status == task.Success })
	if p := w.Partitions[1]; w.State != progress.Complete || w.Progress != "complete" || p.Items.Done != 88 ||
		p.Items.Failed != 12 || *p.Items.Expected != 100 || p.Buckets.Failed != 4 || w.Partitions[0].Items.Done != 100 {
		t.Errorf("%+v", w)
	}
	for _, limit := range []int{1, 3, 100} {
		all, page := c.failures(limit)
		told := map[string]bool{}
		for _, b := range all {
			if b.Partition != "apply" || b.Failed != uint64(len(b.Errors)) {
				t.Errorf("%+v", b)
			}
			for _, e := range b.Errors {
				told[e.Code+" "+e.Message] = true
			}
		}
		if len(all) != 4 || len(told) != 12 || !told["odd number 92"] || page.FailedItems != 12 ||
			page.FailedBuckets != 4 {
			t.Errorf("pages of %d: %d buckets, %d errors of %d", limit, len(all), len(told), page.FailedItems)
		}
	}
	_, page := c.failures(100)
	c.send("viewer", "GET", "t1.n~1/work/errors?cursor=7.7.7.7.x", "", 400, "cursor")
	mended.Store(true)
	c.send("operator", "POST", "t1.n~1/work/rerun", `{"failed":true}`, 204, "")
	w = c.report(func(w *progress.Work) bool { return w.Run == 2 && w.State == progress.Complete })
	if p := w.Partitions[1]; !w.FailedOnly || p.Buckets.Total != 4 || p.Buckets.Done != 4 || w.Items.Failed != 0 ||
		w.Items.Done != 40 {
		t.Errorf("the second run: %+v", w)
	}
	if all, _ := c.failures(100); len(all) != 0 || page.Run != 1 {
		t.Errorf("the second run tells %+v", all)
	}
	c.report(func(w *progress.Work) bool { return w.Status == task.Success })
	c.send("operator", "POST", "t1.n~1/work/rerun", `{"failed":true}`, 409, "no bucket had failed items")
}

func TestCluster_SuspendWaitsForTheBucketsThatItsAttemptsGiveBack(t *testing.T) {
	t.Parallel()
	open := make(chan struct{})
	c := newCluster(t, func(ctx context.Context, n int64) error {
		if n < 20 {
			return nil
		}
		select {
		case <-open:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	ctx := t.Context()
	f := c.submit(ctx, task.SubmitOptions{ID: "t1.n/1"})
	w := c.report(func(w *progress.Work) bool { return len(w.Open) == 3 && w.Partitions[1].Buckets.Done == 2 })
	if w.Progress != "20 % in 2/2" || w.Workers.Running != 3 || len(w.Workers.Nodes) != 1 ||
		w.Workers.Nodes[0].Buckets != 3 {
		t.Errorf("%+v", w)
	}
	c.send("operator", "POST", "t1.n~1/work/reset", "", 409, "it has 3 buckets open; suspend it first")
	c.send("operator", "POST", "t1.n~1/suspend", "", 200, `{"open_buckets":0}`)
	w = c.report(func(*progress.Work) bool { return true })
	if w.State != progress.Suspended || w.Partitions[1].State != progress.Suspended || len(w.Open) != 0 ||
		w.Partitions[1].Buckets.Done != 2 {
		t.Errorf("suspended: %+v", w)
	}
	close(open)
	c.send("operator", "POST", "t1.n~1/resume", "", 204, "")
	if r, err := f.Wait(ctx); err != nil || r.Partitions[1].Done != 100 {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestCluster_SuspendOfAProcessThatIgnoresItsContextWaitsForItAndCostsNoFailure(t *testing.T) {
	t.Parallel()
	open := make(chan struct{})
	c := newCluster(t, func(context.Context, int64) error {
		<-open
		return nil
	})
	ctx := t.Context()
	f := c.submit(ctx, task.SubmitOptions{ID: "t1.n/1"})
	c.report(func(w *progress.Work) bool { return len(w.Open) == 3 })
	suspended := make(chan struct{})
	go func() {
		defer close(suspended)
		c.send("operator", "POST", "t1.n~1/suspend", "", 200, `{"open_buckets":0}`)
	}()
	c.report(func(w *progress.Work) bool { return w.State == progress.Suspended && len(w.Open) == 3 })
	close(open)
	<-suspended
	for _, id := range []string{"t1.n~1", "t1.n~1.w2", "t1.n~1.w3"} {
		c.send("operator", "GET", id, "", 200, `"failures":0,"lost":0`)
	}
	c.send("operator", "POST", "t1.n~1/resume", "", 204, "")
	if r, err := f.Wait(ctx); err != nil || r.Partitions[1].Done != 100 {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestCluster_ATaskWithoutAWorkSaysWhatItIs(t *testing.T) {
	t.Parallel()
	open := make(chan struct{})
	c := newCluster(t, func(ctx context.Context, _ int64) error {
		select {
		case <-open:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	ctx := t.Context()
	f := c.submit(ctx, task.SubmitOptions{ID: "t1.n/1"})
	c.submit(ctx, task.SubmitOptions{ID: "t1.n/2", NotBefore: time.Now().Add(time.Hour)})
	c.report(func(w *progress.Work) bool { return len(w.Open) == 3 })
	for _, of := range [][2]string{{"GET", ""}, {"GET", "/errors"}, {"POST", "/reset"}} {
		method, path := of[0], "/work"+of[1]
		c.send("operator", method, "t1.n~1.w2"+path, "", 404, "task t1.n/1.w2 is worker 2 of the work of task t1.n/1")
		c.send("operator", method, "t1.n~2"+path, "", 404, "task t1.n/2 has no work: its behavior numbers is none, or no")
		c.send("operator", method, "t1.n~3"+path, "", 404, "t1.n/3")
		c.send("sleeper", method, "t1.n~2"+path, "", 404, "it is not there, or the token is not for it")
	}
	close(open)
	if _, err := f.Wait(ctx); err != nil {
		t.Error(err)
	}
}

func TestCluster_AThresholdIsToldAndResetLetsTheWorkGoOn(t *testing.T) {
	t.Parallel()
	c := newCluster(t, func(ctx context.Context, _ int64) error {
		return work.Permit(ctx, "applied")
	}, work.Threshold{Counter: "applied", Limit: 80})
	ctx := t.Context()
	if _, err := c.submit(ctx, task.SubmitOptions{ID: "t1.n/1"}).Wait(ctx); err == nil {
		t.Fatal("no failure")
	}
	w := c.report(func(w *progress.Work) bool { return len(w.Open) == 0 })
	if counter := w.Partitions[1].Thresholds[0]; w.State != progress.Failed || !counter.Tripped || counter.Count != 80 {
		t.Errorf("%+v", w)
	}
	c.send("operator", "GET", "t1.n~1/explain", "", 200, "work reset --thresholds")
	c.send("operator", "POST", "t1.n~1/work/reset", `{"thresholds":true}`, 204, "")
	c.send("operator", "POST", "t1.n~1/retry", "", 204, "")
	w = c.report(func(w *progress.Work) bool { return w.Status == task.Success })
	if w.Items.Done != 200 || !strings.HasPrefix(w.Progress, "complete") {
		t.Errorf("%+v", w)
	}
}

// A page looks at so many events that it is answered soon, however far back the failed items are.
func TestCluster_ErrorsFarBackAreFoundByGoingOnWithTheCursor(t *testing.T) {
	t.Parallel()
	const buckets = 5600
	c := newClusterOf(t, work.Define("numbers", nil, work.Partition[struct{}, int64]{
		Items:        numbers,
		Segmentation: segmentation.Plan{Kind: segmentation.Numeric, To: buckets, Buckets: buckets},
		Workers:      32,
		Process: func(_ context.Context, n int64) error {
			if n == 0 {
				return fmt.Errorf("number %d", n)
			}
			return nil
		},
	}))
	ctx := t.Context()
	if _, err := c.submit(ctx, task.SubmitOptions{ID: "t1.n/1"}).Wait(ctx); err != nil {
		t.Fatal(err)
	}
	var first progress.FailurePage
	text := c.send("viewer", "GET", "t1.n~1/work/errors", "", 200, `"buckets":[]`)
	if err := json.Unmarshal([]byte(text), &first); err != nil || first.Cursor == "" || first.FailedItems != 1 {
		t.Fatalf("%v: %s", err, text)
	}
	all, last := c.failures(20)
	if len(all) != 1 || all[0].Bucket != 1 || all[0].Partition != "1" || last.FailedItems != 1 {
		t.Errorf("%+v, %+v", all, last)
	}
}
