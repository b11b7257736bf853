package ledger_test

import (
	"errors"
	"iter"
	"strings"
	"testing"
	"time"

	"taskledger/engine"
	"taskledger/events"
	"taskledger/internal/testcluster"
	"taskledger/projection"
	"taskledger/store"
	"taskledger/task"
)

func kindsOf(seq iter.Seq2[events.Event, error]) (string, error) {
	var kinds []string
	for ev, err := range seq {
		if err != nil {
			return strings.Join(kinds, " "), err
		}
		kinds = append(kinds, ev.Kind().String())
	}
	return strings.Join(kinds, " "), nil
}

func TestHistory_OfADeletedTaskComesFromJournalAndArchive(t *testing.T) {
	t.Parallel()
	p := newPast(t)
	id := testcluster.IDIn(0, pastShards)
	p.do(id)
	if err := p.node.Delete(testcluster.Within(t), id); err != nil {
		t.Fatal(err)
	}
	const whole = "Created Started Succeeded Deleted"
	if got, err := kindsOf(p.node.Ledger().History(testcluster.Within(t), id)); got != whole || err != nil {
		t.Errorf("by the node: %s, %v", got, err)
	}
	p.do(id + "/2")
	if got, err := kindsOf(p.reader(nil).Ledger().History(testcluster.Within(t), id)); got != whole || err != nil {
		t.Errorf("by another client: %s, %v", got, err)
	}
	p.keep(0)
	if got, err := kindsOf(p.reader(p.archive).Ledger().History(testcluster.Within(t), id)); got != whole || err != nil {
		t.Errorf("from the archive: %s, %v", got, err)
	}
	if got, err := kindsOf(p.reader(nil).Ledger().History(testcluster.Within(t), id)); got != "" || !errors.Is(err, task.ErrNotFound) || !strings.Contains(err.Error(), "dropped") {
		t.Errorf("without the archive: %s, %v", got, err)
	}
	if got, err := kindsOf(p.reader(nil).Ledger().History(testcluster.Within(t), id+"/2")); got != "Succeeded" || !errors.Is(err, store.ErrTrimmed) {
		t.Errorf("of what is left: %s, %v; want the last event and ErrTrimmed", got, err)
	}
	if got, err := kindsOf(p.reader(p.archive).Ledger().History(testcluster.Within(t), "nobody")); got != "" || !errors.Is(err, task.ErrNotFound) {
		t.Errorf("of no task: %s, %v", got, err)
	}
}

// A second life must not hide the first from the past.
func TestState_AtATimeAndAfterAnEvent(t *testing.T) {
	t.Parallel()
	p := newPast(t)
	id := testcluster.IDIn(0, pastShards)
	p.do(id)
	var first []events.Event
	for ev, err := range p.node.Ledger().History(testcluster.Within(t), id) {
		if err != nil {
			t.Fatal(err)
		}
		first = append(first, ev)
	}
	testcluster.Await(t, "a later millisecond", func() bool { return time.Now().After(first[2].At.Time().Add(5 * time.Millisecond)) })
	if err := p.node.Delete(testcluster.Within(t), id); err != nil {
		t.Fatal(err)
	}
	deleted := time.Now()
	testcluster.Await(t, "a later millisecond", func() bool { return time.Since(deleted) > 5*time.Millisecond })
	p.do(id)
	for _, r := range []*engine.Client{p.node.Client, p.reader(nil)} {
		if task, err := r.Ledger().StateAt(testcluster.Within(t), id, first[2].At.Time()); err != nil || task.Status != projection.Success || string(task.Result) != "\x011" ||
			task.Created != first[0].Position.Ref {
			t.Errorf("at the end of the first life: %+v, %v", task, err)
		}
		if _, err := r.Ledger().StateAt(testcluster.Within(t), id, first[0].At.Time().Add(-time.Millisecond)); !errors.Is(err, task.ErrNotFound) {
			t.Errorf("before its creation: %v", err)
		}
		if _, err := r.Ledger().StateAt(testcluster.Within(t), id, deleted.Add(2*time.Millisecond)); !errors.Is(err, task.ErrNotFound) {
			t.Errorf("between its lives: %v", err)
		}
		if task, err := r.Ledger().StateAt(testcluster.Within(t), id, time.Time{}); err != nil || task.Status != projection.Success || task.Created == first[0].Position.Ref {
			t.Errorf("now: %+v, %v", task, err)
		}
		for seq, status := range []projection.Status{projection.Created, projection.Running, projection.Success} {
			task, err := r.Ledger().StateAfter(testcluster.Within(t), id, uint64(seq+1))
			if err != nil || task.Status != status || task.Seq != uint64(seq+1) {
				t.Errorf("after event %d: %+v, %v", seq+1, task, err)
			}
		}
		for _, seq := range []uint64{0, 4} {
			_, err := r.Ledger().StateAfter(testcluster.Within(t), id, seq)
			if invalid, ok := errors.AsType[*store.InvalidError](err); !ok || invalid.Field != "seq" || errors.Is(err, task.ErrNotFound) {
				t.Errorf("after event %d, which there is not: %v", seq, err)
			}
		}
	}
}

// A task that was deleted exists no more, at no time in particular.
func TestState_OfADeletedTaskSaysThatItWas(t *testing.T) {
	t.Parallel()
	p := newPast(t)
	id := testcluster.IDIn(0, pastShards)
	p.do(id)
	if err := p.node.Delete(testcluster.Within(t), id); err != nil {
		t.Fatal(err)
	}
	if _, err := p.node.Get(testcluster.Within(t), id); !errors.Is(err, task.ErrNotFound) || !strings.HasSuffix(err.Error(), "no such task: it was deleted") {
		t.Errorf("get: %v", err)
	}
}
