package integration_test

import (
	"errors"
	"reflect"
	"testing"

	"taskledger/behaviors"
	"taskledger/events"
	"taskledger/internal/testcluster"
	"taskledger/store"
	"taskledger/task"
)

func TestFuture_NodeThatOnlyObservesGetsTheEqualResult(t *testing.T) {
	withAndWithoutNATS(t, func(t *testing.T, c *testcluster.Cluster) {
		w := defineWork("work", &behaviors.Rules[string, string]{TaskID: idFromParams})
		a := c.StartNode("a", nil, w.on("a"))
		b := c.StartNode("b", noSlots, w.on("b"))
		client := c.StartClient("caller", nil)
		first := w.submit(t, a, "x")
		r := w.next(t)
		onB, onClient := w.submit(t, b, "x"), w.submit(t, client, "x")
		pending(t, onB)
		w.nothing(t)
		r.succeed("done")
		for _, f := range []*behaviors.Future[string]{first, onB, onClient} {
			want(t, f, "done")
		}
		w.nothing(t)
	})
}

func TestFuture_EveryNodeAndClientGetsTheEqualError(t *testing.T) {
	withAndWithoutNATS(t, func(t *testing.T, c *testcluster.Cluster) {
		w := defineWork("work", &behaviors.Rules[string, string]{TaskID: idFromParams, Policy: task.Policy{MaxAttempts: 1}})
		a := c.StartNode("a", nil, w.on("a"))
		b := c.StartNode("b", noSlots, w.on("b"))
		client := c.StartClient("caller", nil)
		early := []*behaviors.Future[string]{w.submit(t, a, "x"), w.submit(t, b, "x"), w.submit(t, client, "x")}
		w.next(t).fail(behaviors.Code("quota", errors.New("too much"), map[string]string{"limit": "3"}))
		first := wantFailure(t, early[0], "quota")
		late := []*behaviors.Future[string]{w.submit(t, a, "x"), w.submit(t, b, "x"), w.submit(t, client, "x"), w.Attach(b, "x"), w.Attach(client, "x")}
		for i, f := range append(early, late...) {
			if e := wantFailure(t, f, "quota"); !reflect.DeepEqual(e, first) {
				t.Errorf("future %d: %+v, want %+v", i, e, first)
			}
		}
		if want := (&task.Error{Task: "x", Attempt: 1, Code: "quota", Message: "too much", Retryable: true,
			Properties: map[string]string{"limit": "3"}}); !reflect.DeepEqual(first, want) {
			t.Errorf("error %+v, want %+v", first, want)
		}
	})
}

func TestFuture_CloseDoesNotCancel(t *testing.T) {
	withAndWithoutNATS(t, func(t *testing.T, c *testcluster.Cluster) {
		w := defineWork("work", &behaviors.Rules[string, string]{TaskID: idFromParams})
		n := c.StartNode("a", nil, w.on("a"))
		closed, kept := w.submit(t, n, "x"), w.submit(t, n, "x")
		r := w.next(t)
		pending(t, closed)
		closed.Close()
		if _, err := closed.Wait(within(t, soon)); !errors.Is(err, task.ErrClosed) {
			t.Errorf("closed future: %v, want ErrClosed", err)
		}
		if r.ctx.Err() != nil {
			t.Errorf("the attempt was ended: %v", r.ctx.Err())
		}
		r.succeed("done")
		want(t, kept, "done")
	})
}

func TestFuture_AttachFollowsATaskFromAnywhere(t *testing.T) {
	withAndWithoutNATS(t, func(t *testing.T, c *testcluster.Cluster) {
		w := defineWork("work", &behaviors.Rules[string, string]{TaskID: idFromParams})
		n := c.StartNode("a", nil, w.on("a"))
		client := c.StartClient("caller", nil)
		w.submit(t, n, "x")
		r := w.next(t)
		early := w.Attach(client, "x")
		pending(t, early)
		r.succeed("done")
		want(t, early, "done")
		want(t, w.Attach(client, "x"), "done")
		if _, err := w.Attach(client, "never-submitted").Wait(within(t, soon)); !errors.Is(err, task.ErrNotFound) {
			t.Errorf("attach to no task: %v, want ErrNotFound", err)
		}
		invalid, ok := errors.AsType[*store.InvalidError](second(w.Attach(client, "a/b/c").Wait(within(t, soon))))
		if !ok || invalid.Field != "id" {
			t.Errorf("attach to no id: %v, want an InvalidError of id", invalid)
		}
	})
}

func second[A any](_ A, err error) error { return err }

func TestFuture_ThenAllAnyAndHandleCompose(t *testing.T) {
	withAndWithoutNATS(t, func(t *testing.T, c *testcluster.Cluster) {
		w := defineWork("work", &behaviors.Rules[string, string]{Policy: task.Policy{MaxAttempts: 1}})
		n := c.StartNode("a", nil, w.on("a"))
		client := c.StartClient("caller", nil)
		good, better, bad := w.submit(t, client, "good"), w.submit(t, n, "better"), w.submit(t, client, "bad")
		length := behaviors.Then(good, func(s string) (int, error) { return len(s), nil })
		all := behaviors.Then(behaviors.All(good, better), func(s []string) (string, error) { return s[0] + "," + s[1], nil })
		some := behaviors.Any(bad, better)
		none := behaviors.All(good, bad)
		mended := behaviors.Handle(bad, func(_ string, err error) (string, error) { return "mended", nil })
		for range 3 {
			if r := w.next(t); r.params == "bad" {
				r.fail(errors.New("no luck"))
			} else {
				r.succeed(r.params)
			}
		}
		want(t, length, 4)
		want(t, all, "good,better")
		want(t, some, "better")
		want(t, mended, "mended")
		wantFailure(t, none, events.CodeFailed)
	})
}

func TestClient_NeverRunsATask(t *testing.T) {
	withAndWithoutNATS(t, func(t *testing.T, c *testcluster.Cluster) {
		w := defineWork("work", nil)
		c.StartNode("a", noSlots)
		client := c.StartClient("caller", nil)
		f := w.submit(t, client, "x")
		w.nothing(t)
		pending(t, f)
		c.StartNode("b", noShards, w.on("b"))
		w.next(t).succeed("done")
		want(t, f, "done")
	})
}
