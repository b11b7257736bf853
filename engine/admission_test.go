package engine_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"taskledger/engine"
	"taskledger/events"
	"taskledger/internal/testcluster"
	"taskledger/store"
	"taskledger/task"
)

// gauge is a store that is as full as the test says.
type gauge struct {
	store.Store
	usage atomic.Pointer[store.Usage]
}

func (g *gauge) under(c *cfg) { g.Store, c.Store = c.Store, g }

func (g *gauge) Usage(context.Context) (store.Usage, error) { return *g.usage.Load(), nil }

// show sets the bytes in use, of 16 MiB; the file is always almost that large.
func (g *gauge) show(percent int64) {
	const quota = 16 << 20
	g.usage.Store(&store.Usage{InUse: quota / 100 * percent, Size: quota - 1, Quota: quota, Revision: 1})
}

// awaitDegraded waits until shard 0 says so of itself; "" = that nothing is wrong.
func awaitDegraded(t *testing.T, c *engine.Client, text string) {
	t.Helper()
	last := ""
	defer func() {
		if t.Failed() {
			t.Logf("shard 0 says %q", last)
		}
	}()
	testcluster.Await(t, "shard 0 says "+text, func() bool {
		infos, err := c.Operations().Shards(within(t))
		if err == nil {
			last = infos[0].Degraded
		}
		return err == nil && strings.Contains(last, text) && (text != "" || last == "")
	})
}

// wantOverload submits a new task, which must be refused with a cause that contains the text.
func wantOverload(t *testing.T, by submitter, b task.Behavior, cause string) {
	t.Helper()
	f, err := by.Submit(within(t), b, nil, task.SubmitOptions{ID: "refused"})
	var overload *task.OverloadError
	if !errors.As(err, &overload) || !strings.Contains(overload.Cause, cause) || overload.RetryAfter <= 0 {
		t.Errorf("submit: got %v, %v; want an *OverloadError that says %q", f, err, cause)
	}
}

// submitInTime submits until it is not refused: the refusal of a batch that was sent twice keeps its sender from
// sending other submits for as long as it says.
func submitInTime(t *testing.T, by submitter, b task.Behavior, id events.TaskID) (f *engine.Future) {
	t.Helper()
	testcluster.Await(t, "a submit of "+string(id), func() (done bool) {
		var err error
		f, err = by.Submit(within(t), b, nil, task.SubmitOptions{ID: id})
		return err == nil
	})
	return f
}

// A store that is almost full takes no new tasks; those that exist are joined, retried and completed. What counts
// is the bytes in use: the file never shrinks.
func TestAdmission_RefusesOnlyNewTasksWhileTheStoreIsAlmostFull(t *testing.T) {
	t.Parallel()
	c := testcluster.New(t, testcluster.Options{Shards: 1})
	g := &gauge{}
	g.show(79)
	j := newJob(task.Policy{MaxAttempts: 2})
	c.StartNode("a", g.under, j)
	client := c.StartClient("caller", nil)
	f := j.submit(t, client, "x")
	first := j.next(t)
	g.show(85)
	awaitDegraded(t, client.Client, "the store holds")
	wantOverload(t, client, j, "the store holds")
	joined := submitInTime(t, client, j, "x")
	if !joined.Joined() {
		t.Error("the second submit has not joined the task")
	}
	first.ends <- task.Outcome{Err: &events.Error{Code: "again", Retryable: true}, Next: time.Now()}
	j.next(t).succeed("1")
	want(t, f, "1")
	want(t, joined, "1")
	if _, err := client.Operations().Retry(within(t), "x"); err != nil {
		t.Errorf("retry: %v", err)
	}
	j.next(t).succeed("2")
	want(t, client.Attach("x"), "2")
	g.show(79)
	awaitDegraded(t, client.Client, "")
	f = j.submit(t, client, "refused")
	j.next(t).succeed("3")
	want(t, f, "3")
}

// What is ready besides goes on.
func TestAdmission_RepetitionsWaitUntilThereIsRoom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, g := newModelled(t, true), &gauge{}
		g.show(1)
		j := newJob(task.Policy{MaxAttempts: 1, Every: time.Minute})
		n := c.start("a", 0, g.under, j)
		n.ready(t)
		var futures []*engine.Future
		for _, id := range []events.TaskID{"x", "y"} {
			f, err := n.Submit(within(t), j, nil, task.SubmitOptions{ID: id})
			if err != nil {
				t.Fatal(err)
			}
			j.next(t).ends <- task.Outcome{Err: &events.Error{Code: "broken"}}
			futures = append(futures, f)
		}
		later, err := n.Submit(within(t), j, nil, task.SubmitOptions{ID: "later", Delay: 3 * time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		g.show(90)
		time.Sleep(2 * time.Minute)
		j.nothing(t)
		if e, err := n.Explain(within(t), "x"); err != nil || e.Why != task.WhyStoreFull {
			t.Errorf("explained by %+v, %v", e, err)
		}
		time.Sleep(2 * time.Minute)
		j.next(t).succeed("1")
		want(t, later, "1")
		g.show(1)
		r := j.next(t)
		if r.Number != 2 || r.Failures != 0 {
			t.Errorf("attempt %d after %d failures of its run, want the first of the second run", r.Number, r.Failures)
		}
		r.succeed("2")
		for _, f := range futures {
			if _, err := f.Wait(within(t)); err == nil {
				t.Errorf("the first run of %s succeeded", f.ID())
			}
		}
	})
}

// The tasks of a shard that have not ended must fit into the store twice, as snapshots.
func TestAdmission_RefusesMoreLiveTasksThanTheStoreCanHold(t *testing.T) {
	t.Parallel()
	c := testcluster.New(t, testcluster.Options{Shards: 1})
	g := &gauge{}
	g.show(1)
	j := newJob(task.Policy{})
	c.StartNode("a", g.under, j)
	client := c.StartClient("caller", nil)
	large := []byte(`"` + strings.Repeat("x", 60<<10) + `"`)
	put := func(i int) error {
		_, err := client.Submit(within(t), j, large, task.SubmitOptions{ID: events.TaskID(fmt.Sprint("later", i)), NotBefore: time.Now().Add(time.Hour)})
		return err
	}
	n, err := 0, error(nil)
	for ; err == nil && n < 100; n++ {
		err = put(n)
	}
	if held := int64(n-1) * int64(len(large)); held < 3<<20 || held > 4<<20+int64(len(large)) {
		t.Errorf("%d bytes were accepted; want a quarter of 16 MiB", held)
	}
	if overload, refused := errors.AsType[*task.OverloadError](err); !refused || !strings.Contains(overload.Cause, "tasks of the shard") {
		t.Errorf("the last submit: %v", err)
	}
	awaitDegraded(t, client.Client, "tasks of the shard")
	for i := range 10 {
		if err := client.Operations().Delete(within(t), events.TaskID(fmt.Sprint("later", i))); err != nil {
			t.Fatal(err)
		}
	}
	awaitDegraded(t, client.Client, "")
	testcluster.Await(t, "a submit with room again", func() bool { return put(0) == nil })
}

// Where the bytes of a store that is almost full are no tasks, the past takes them, and the command that removes it
// is told.
func TestAdmission_TellsTheCommandThatCompactsWhereLiveDataIsSmall(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		trimming engine.Trimming
		advice   string
	}{
		"of little":      {engine.TrimAll, "tasks and items are few of these, so compact etcd (etcdctl compact 1)"},
		"of the journal": {engine.TrimNothing, "archive, or raise the quota"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := &gauge{}
			g.show(85)
			n := testcluster.New(t, testcluster.Options{NoNATS: true, Shards: 1}).StartNode("a", with(g.under, func(cfg *cfg) { cfg.Trimming = c.trimming }))
			awaitDegraded(t, n.Client, c.advice)
		})
	}
}

// counted counts the records of a log that hold a text.
type counted struct {
	slog.Handler
	text string
	n    *atomic.Int64
}

func (h counted) Handle(ctx context.Context, r slog.Record) error {
	if strings.Contains(r.Message, h.text) {
		h.n.Add(1)
	}
	return h.Handler.Handle(ctx, r)
}

func (h counted) WithAttrs(attrs []slog.Attr) slog.Handler {
	return counted{h.Handler.WithAttrs(attrs), h.text, h.n}
}

func TestAdmission_IsLoggedWhenItBeginsAndNotForEveryByte(t *testing.T) {
	t.Parallel()
	c := testcluster.New(t, testcluster.Options{NoNATS: true, Shards: 1})
	g, said := &gauge{}, new(atomic.Int64)
	g.show(79)
	j := newJob(task.Policy{})
	n := c.StartNode("a", with(g.under, func(cfg *cfg) { cfg.Log = slog.New(counted{cfg.Log.Handler(), "new tasks are refused", said}) }), j)
	for times := range int64(2) {
		for percent := int64(81); percent < 83; percent++ {
			g.show(percent)
			awaitDegraded(t, n.Client, "the store holds "+strconv.FormatInt(16<<20/100*percent, 10))
			wantOverload(t, n, j, "the store holds")
		}
		if got := said.Load(); got != times+1 {
			t.Errorf("logged %d times, want %d", got, times+1)
		}
		g.show(50)
		awaitDegraded(t, n.Client, "")
	}
}
