package works_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/works"
	"taskledger/events"
	fold "taskledger/projection/works"
	"taskledger/task"
)

func TestBuckets_NoMoreAreOpenAtOnceThanThePartitionHasWorkers(t *testing.T) {
	w := newWorld(t)
	w.submit(task.Policy{})
	w.start(parent, "n-1")
	w.plan("5f", part("a", 3, 3), part("b", 5, 1))
	w.begin(1)
	w.take(parent)
	w.rest()
	for n := uint32(2); n <= 3; n++ {
		w.start(worker(n), "n-2")
		w.take(worker(n))
	}
	w.end(parent, 1)
	w.end(worker(2), 2)
	w.end(worker(3), 3)
	w.begin(2)
	if m := w.take(worker(3)); m.Bucket != 1 {
		t.Fatalf("%+v", m)
	}
	if m := w.take(parent); works.State(m.State) != works.Wait {
		t.Errorf("a second bucket of a partition for one worker: %+v", m)
	}
	if m := w.end(worker(3), 1); m.Bucket != 2 {
		t.Errorf("%+v, want the next bucket in place of the one that has ended", m)
	}
	w.wantOpen(map[uint32]uint64{3: 2})
}

func TestWorkers_HaveThePriorityOfTheirWorkAndAreNotRepeated(t *testing.T) {
	w := newWorld(t)
	policy, err := task.Policy{Every: time.Minute}.Complete()
	if err != nil {
		t.Fatal(err)
	}
	w.must(&command.Submit{
		Task:      parent,
		Behavior:  "work",
		Policy:    policy,
		Priority:  7,
		Params:    events.JSON([]byte("{}")),
		NotBefore: w.now,
	})
	w.start(parent, "n-1")
	w.plan("5f", part("all", 10, 2))
	w.begin(1)
	w.take(parent)
	w.rest()
	is := w.task(worker(2))
	if want := w.task(parent).Priority; want != 7 || is.Priority != want {
		t.Errorf("the worker has the priority %d, its work %d", is.Priority, want)
	}
	w.start(worker(2), "n-2")
	w.complete(worker(2), command.Succeeded)
	if !is.Final() && !w.task(worker(2)).Final() {
		t.Errorf("the worker runs again: %+v", w.task(worker(2)))
	}
}

func TestCancel_OfOneWorkerLeavesItNoPermitAndNoFurtherBucket(t *testing.T) {
	w := inWork(t, 10, 2, task.Policy{}, func(p *events.WorkPartition) {
		p.Thresholds = []events.WorkThreshold{{Counter: "c", Limit: 1}}
	})
	w.operate(worker(2), task.Cancel)
	if m := w.permit(worker(2), "c", 1); works.State(m.State) != works.Stop || len(m.Granted) != 0 {
		t.Errorf("a permit: %+v", m)
	}
	if m := w.end(worker(2), 2); works.State(m.State) != works.Stop || m.Bucket != 0 {
		t.Errorf("a further bucket: %+v", m)
	}
	w.wantOpen(map[uint32]uint64{1: 1})
}

// Such an entry takes some of them: the next one has the others.
func TestCancel_InAnEntryThatIsNearlyFullEndsTheOtherWorkersInTheNext(t *testing.T) {
	w := newWorld(t)
	w.budget = 1000
	w.submit(task.Policy{})
	w.start(parent, "n-1")
	w.plan("5f", part("all", 1000, 64))
	w.begin(1)
	w.take(parent)
	w.rest()
	for n := uint32(2); n <= 64; n++ {
		w.start(worker(n), "n-2")
		w.take(worker(n))
	}
	note := strings.Repeat("x", 200)
	w.turn(func(d *command.Decider) {
		for d.Entry.Size() < events.SealEntryBytes-600 {
			d.Emit(w.task(parent), &events.Progressed{Done: 1, Note: note})
		}
		if a := d.Decide(&command.Operate{Task: parent, Do: task.Cancel}); a.Code != command.AnswerOK {
			t.Fatalf("%+v", a)
		}
	})
	cancelled := func() (n int) {
		for _, is := range w.work().Workers() {
			if w.task(is.ID).Cancelled {
				n++
			}
		}
		return n
	}
	if n := cancelled(); n == 0 || n == 63 {
		t.Fatalf("%d workers are cancelled in the entry: nothing is shown", n)
	}
	w.now++
	if w.turn(); cancelled() != 63 {
		t.Errorf("%d workers are cancelled by the next entry, want 63", cancelled())
	}
}

// afterEach has worker after worker end, each by an operation on the one that is there.
func afterEach(w *world, n uint32, ends func(id events.TaskID)) {
	w.t.Helper()
	for number := uint32(2); number < 2+n; number++ {
		w.rest()
		if w.task(worker(number)) == nil {
			w.t.Fatalf("there is no worker %d", number)
		}
		ends(worker(number))
		w.forget()
	}
}

func TestWorkers_ThatHaveEndedAreKeptUpToAThousandTheLastOnes(t *testing.T) {
	w := inWork(t, 10, 1, task.Policy{}, func(p *events.WorkPartition) { p.Workers = 2 })
	afterEach(w, fold.MaxKeptWorkers+5, func(id events.TaskID) { w.operate(id, task.Cancel) })
	if n := w.work().Kept(); n != fold.MaxKeptWorkers {
		t.Errorf("%d ended workers are kept, want %d", n, fold.MaxKeptWorkers)
	}
	if w.work().Worker(6) != nil || w.work().Worker(7) == nil {
		t.Error("want the first five given up, and no other")
	}
}

// another plans a work of another task than the parent, and returns the answer.
func (w *world) another(n int, partition events.WorkPartition) command.Answer {
	w.t.Helper()
	id := events.TaskID("a/x" + strconv.Itoa(n))
	policy, err := task.Policy{}.Complete()
	if err != nil {
		w.t.Fatalf("%v", err)
	}
	if w.task(id) == nil {
		w.must(&command.Submit{
			Task:      id,
			Behavior:  "work",
			Policy:    policy,
			Params:    events.JSON([]byte("{}")),
			NotBefore: w.now,
		})
		w.start(id, "n-1")
	}
	c := &works.Plan{Definition: "5f", Partitions: works.EncodePartitions([]events.WorkPartition{partition})}
	c.Task, c.Started, c.Node = w.attempt(id)
	w.forget()
	return w.decide(c)
}

func TestPlan_OfOneWorkMoreThanAShardHasWaitsUntilOneHasEnded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for n := range fold.MaxWorks {
		if a := w.another(n, part("all", 1, 1)); a.Code != command.AnswerOK {
			t.Fatalf("work %d: answer %d: %s", n, a.Code, a.Text)
		}
	}
	a := w.another(fold.MaxWorks, part("all", 1, 1))
	if a.Code != command.AnswerOverload || !strings.Contains(a.Text, "1000 works that have not ended, or have a token or holds: delete some") {
		t.Errorf("answer %d: %s", a.Code, a.Text)
	}
	w.complete("a/x3", command.Failed, func(c *command.Complete) { c.ByPolicy = false })
	if a := w.another(fold.MaxWorks, part("all", 1, 1)); a.Code != command.AnswerOK {
		t.Errorf("after one has ended: answer %d: %s", a.Code, a.Text)
	}
	if all := fold.Of(w.state); all.Work("a/x3") != nil || all.Len() != fold.MaxWorks {
		t.Errorf("%d works, want the one forgotten that has ended", all.Len())
	}
}

func TestPlan_OfWorksThatTakeTooMuchIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	large := part("all", 1, 1)
	large.Segments = make([]byte, events.MaxSegmentBytes)
	for n := range fold.MaxWorks {
		all := fold.Of(w.state)
		fits := all.Bytes()+events.MaxSegmentBytes+100 <= fold.MaxBytes
		switch a := w.another(n, large); {
		case fits && a.Code != command.AnswerOK:
			t.Fatalf("work %d beside %d bytes: answer %d: %s", n, all.Bytes(), a.Code, a.Text)
		case fits:
		case a.Code != command.AnswerOverload || !strings.Contains(a.Text, strconv.Itoa(fold.MaxBytes)):
			t.Errorf("beside %d bytes: answer %d: %s", all.Bytes(), a.Code, a.Text)
			return
		default:
			return
		}
	}
	t.Errorf("%d works take %d bytes", fold.MaxWorks, fold.Of(w.state).Bytes())
}
