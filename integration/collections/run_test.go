package collections_test

import (
	"errors"
	"testing"
	"time"

	"taskledger/behaviors"
	"taskledger/collections/taskjson"
	"taskledger/events"
)

const orders = "/tasks/?source=my_shop&collection=new_orders"

// wantOne fails unless one request has made a run, all others were told of it, and no second one started.
func (w *world) wantOne(all []answer) (id string) {
	w.Helper()
	made := 0
	id = all[0].TaskID
	for _, a := range all {
		switch {
		case a.TaskID != id || id == "":
			w.Errorf("run %q, and run %s", id, a.text)
		case a.status == 201:
			made++
		case a.status != 200:
			w.Errorf("status %d: %s", a.status, a.text)
		}
	}
	if made != 1 {
		w.Errorf("%d of %d requests have made a run, want 1", made, len(all))
	}
	return id
}

// wantAll fails unless all answers have a status and name one run.
func (w *world) wantAll(all []answer, status int) (id string) {
	w.Helper()
	for _, a := range all {
		if a.status != status || a.TaskID == "" || a.TaskID != all[0].TaskID {
			w.Errorf("status %d, want %d: %s, and first %s", a.status, status, a.text, all[0].text)
		}
	}
	return all[0].TaskID
}

func TestRun_AHundredRequestsOverThreeNodesMakeOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 8, "a", "b", "c")
	w.set("sources: {my_shop: {driver: 'go:held', collections: [{name: new_orders}]}}")
	post := func(i int) answer { return w.ask(i, sam, "POST", orders) }
	id := w.wantOne(w.together(100, post))
	first := w.next()

	// A run that waits for a retry has not ended.
	first.ends <- behaviors.RetryAfter(time.Hour, errors.New("the shop is closed"))
	if a := w.show(id, taskjson.Scheduled); a.StartedAt == 0 || a.FinishedAt != 0 {
		t.Errorf("%s", a.text)
	}
	if again := w.wantAll(w.together(3, post), 200); again != id {
		t.Errorf("run %s while %s waits for a retry", again, id)
	}
	if a := w.ask(1, sam, "POST", "/tasks/"+id+"/cancel"); a.status != 200 {
		t.Fatalf("%d %s", a.status, a.text)
	}
	w.show(id, taskjson.Failed)
	if next := w.ask(2, sam, "POST", orders); next.status != 201 || next.TaskID == id {
		t.Errorf("after the end: %d %s", next.status, next.text)
	}
	w.next().ends <- nil
	if got := w.journal(id, events.KindCreated, events.KindStarted); len(got) != 2 {
		t.Errorf("events %v", got)
	}
	if len(w.started) > 0 {
		t.Errorf("%d further runs", len(w.started))
	}
}

// Whoever repeats a request under its key is answered as the first time, also after the run has ended.
func TestRun_AKeyHasOneAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 8, "a", "b", "c")
	w.set("sources: {my_shop: {driver: 'go:held', collections: [{name: new_orders}]}}")
	keyed := func(i int) answer { return w.ask(i, sam, "POST", orders, "Idempotency-Key", "k") }
	id := w.wantAll(w.together(30, keyed), 201)
	if a := w.ask(0, ada, "POST", orders, "Idempotency-Key", "k"); a.status != 200 || a.TaskID != id {
		t.Errorf("the key of another caller: %d %s", a.status, a.text)
	}
	w.next().ends <- nil
	w.show(id, taskjson.Success)
	if again := w.wantAll(w.together(3, keyed), 201); again != id {
		t.Errorf("run %s, and %s after its end", id, again)
	}
	if a := w.ask(1, ada, "POST", orders, "Idempotency-Key", "k"); a.status != 200 || a.TaskID != id {
		t.Errorf("a key that shared the run, after its end: %d %s", a.status, a.text)
	}
	other := w.ask(1, sam, "POST", orders, "Idempotency-Key", "another")
	if other.status != 201 || other.TaskID == id {
		t.Errorf("another key: %d %s", other.status, other.text)
	}
	if a := w.ask(2, sam, "POST", orders, "Idempotency-Key", "k"); a.status != 201 || a.TaskID != id {
		t.Errorf("the first key while another run has not ended: %d %s", a.status, a.text)
	}
	w.next().ends <- nil
	if len(w.started) > 0 {
		t.Errorf("%d further runs", len(w.started))
	}
}
