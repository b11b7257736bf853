package ledger_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"taskledger/engine"
	"taskledger/internal/testcluster"
	"taskledger/ledger"
	"taskledger/task"
)

// A second life must not hide the first from the past.
func TestState_AtATimeAndAfterAnEvent(t *testing.T) {
	t.Parallel()
	p := newPast(t)
	id := testcluster.IDIn(0, pastShards)
	p.do(id)
	var first []ledger.Event
	for ev, err := range p.node.Ledger().History(testcluster.Within(t), id) {
		if err != nil {
			t.Fatal(err)
		}
		first = append(first, ev)
	}
	testcluster.Await(t, "a later millisecond", func() bool { return time.Now().After(first[2].At.Time().Add(5 * time.Millisecond)) })
	if err := p.node.Operations().Delete(testcluster.Within(t), id); err != nil {
		t.Fatal(err)
	}
	deleted := time.Now()
	testcluster.Await(t, "a later millisecond", func() bool { return time.Since(deleted) > 5*time.Millisecond })
	p.do(id)
	for _, r := range []*engine.Client{p.node.Client, p.reader(nil)} {
		if got, err := r.Ledger().StateAt(testcluster.Within(t), id, first[2].At.Time()); err != nil || got.Status != task.Success || string(got.Result) != "1" ||
			got.Details.Life != first[0].Position.Ref {
			t.Errorf("at the end of the first life: %+v, %v", got, err)
		}
		if _, err := r.Ledger().StateAt(testcluster.Within(t), id, first[0].At.Time().Add(-time.Millisecond)); !errors.Is(err, task.ErrNotFound) {
			t.Errorf("before its creation: %v", err)
		}
		if _, err := r.Ledger().StateAt(testcluster.Within(t), id, deleted.Add(2*time.Millisecond)); !errors.Is(err, task.ErrNotFound) {
			t.Errorf("between its lives: %v", err)
		}
		if got, err := r.Ledger().StateAt(testcluster.Within(t), id, time.Time{}); err != nil || got.Status != task.Success || got.Details.Life == first[0].Position.Ref {
			t.Errorf("now: %+v, %v", got, err)
		}
		for seq, status := range []task.Status{task.Created, task.Running, task.Success} {
			task, err := r.Ledger().StateAfter(testcluster.Within(t), id, uint64(seq+1))
			if err != nil || task.Status != status || task.Details.Seq != uint64(seq+1) {
				t.Errorf("after event %d: %+v, %v", seq+1, task, err)
			}
		}
		for _, seq := range []uint64{0, 4} {
			_, err := r.Ledger().StateAfter(testcluster.Within(t), id, seq)
			if !errors.Is(err, task.ErrNotFound) || !strings.HasSuffix(err.Error(), fmt.Sprintf(": no event %d, it has 1 to 3", seq)) {
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
	if err := p.node.Operations().Delete(testcluster.Within(t), id); err != nil {
		t.Fatal(err)
	}
	if _, err := p.node.GetForgotten(testcluster.Within(t), id); !errors.Is(err, task.ErrNotFound) || !strings.HasSuffix(err.Error(), "no such task: it was deleted") {
		t.Errorf("get: %v", err)
	}
}

// The state after an early event takes about as many reads as there are events up to it, however far apart they stand,
// and however many follow.
func TestState_AfterAnEarlyEventOfALongLifeTakesFewReads(t *testing.T) {
	t.Parallel()
	for between, most := range map[int]int{0: 10, 60: 120} {
		p := newPaper(t)
		p.begin("x")
		p.progress("x", 2000, between)
		l := p.ledger(p.owner(t))
		for _, seq := range []uint64{1, 2, 50} {
			p.asked = 0
			now, err := l.StateAfter(t.Context(), "x", seq)
			if err != nil || now.Details.Seq != seq {
				t.Fatalf("%d between: after event %d: %d, %v", between, seq, now.Details.Seq, err)
			}
			if p.asked > most {
				t.Errorf("%d between: %d reads for the state after event %d", between, p.asked, seq)
			}
		}
	}
}
