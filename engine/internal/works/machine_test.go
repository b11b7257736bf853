package works_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/works"
	"taskledger/events"
	"taskledger/projection"
	fold "taskledger/projection/works"
	"taskledger/task"
)

// mostWorkers bounds the workers of the first partition; the second one has less.
const mostWorkers = 3

// machine drives a work through whatever may happen to it, and holds it to a model that knows events alone: which
// buckets were done, who has which, and which items were counted.
type machine struct {
	*world
	buckets map[int]uint64 // of each partition
	limit   uint64
	seen    int                            // of told
	part    int                            // under way
	done    map[uint64]bool                // of the partition under way
	has     map[uint32]uint64              // open buckets, by worker
	running map[events.Ref]events.TaskID   // attempts, by Started
	counted map[uint64]map[uint64]struct{} // items by bucket
	counts  uint64                         // of the partition
}

// follow holds the events since the last check to the model.
func (m *machine) follow(t *rapid.T) {
	for _, ev := range m.told[m.seen:] {
		m.seen++
		switch b := ev.Body.(type) {
		case *events.Started:
			m.running[ev.Position.Ref] = ev.Task
		case *events.Succeeded, *events.Failed, *events.Lost, *events.Released, *events.Snoozed:
			maps.DeleteFunc(m.running, func(_ events.Ref, id events.TaskID) bool { return id == ev.Task })
		case *events.PartitionStarted:
			m.part, m.done, m.counts = int(b.Partition), map[uint64]bool{}, 0
			m.counted = map[uint64]map[uint64]struct{}{}
		case *events.PartitionEnded:
			if uint64(len(m.done)) != m.buckets[m.part] {
				t.Fatalf("partition %d ends with %d of %d buckets", m.part, len(m.done), m.buckets[m.part])
			}
		case *events.PermitsGranted:
			for _, item := range b.Items {
				if m.counted[b.Bucket] == nil {
					m.counted[b.Bucket] = map[uint64]struct{}{}
				}
				if _, twice := m.counted[b.Bucket][item]; twice {
					t.Fatalf("item %d of bucket %d is counted twice", item, b.Bucket)
				}
				m.counted[b.Bucket][item] = struct{}{}
				m.counts++
			}
			if m.counts > m.limit {
				t.Fatalf("%d are counted, want %d at most", m.counts, m.limit)
			}
		case *events.BucketsMoved:
			m.moves(t, b)
		}
	}
}

func (m *machine) moves(t *rapid.T, b *events.BucketsMoved) {
	if b.Worker == 0 {
		clear(m.has)
		return
	}
	if gone := max(b.Ended, b.Returned); gone != 0 {
		if m.has[b.Worker] != gone {
			t.Fatalf("worker %d leaves bucket %d, it has %d", b.Worker, gone, m.has[b.Worker])
		}
		delete(m.has, b.Worker)
	}
	if b.Ended != 0 {
		if m.done[b.Ended] {
			t.Fatalf("bucket %d of partition %d is done twice", b.Ended, m.part)
		}
		m.done[b.Ended] = true
	}
	if b.Started == 0 {
		return
	}
	for n, bucket := range m.has {
		if bucket == b.Started {
			t.Fatalf("workers %d and %d have bucket %d", n, b.Worker, bucket)
		}
	}
	least := uint64(1)
	for ; m.done[least] || slices.Contains(slices.Collect(maps.Values(m.has)), least); least++ {
	}
	if b.Started != least || b.Started > m.buckets[m.part] {
		t.Fatalf("bucket %d starts, %d is the least free one", b.Started, least)
	}
	m.has[b.Worker] = b.Started
}

// check holds what must always be so.
func (m *machine) check(t *rapid.T) {
	m.follow(t)
	of := m.work()
	if of == nil {
		return
	}
	if got := m.open(); !maps.Equal(got, m.has) {
		t.Fatalf("workers have %v, want %v", got, m.has)
	}
	for _, o := range of.Open() {
		id := m.running[o.Attempt]
		if id != worker(o.Worker) {
			t.Fatalf("bucket %d is of attempt %d of %s, which is that of %q", o.Bucket, o.Attempt, worker(o.Worker), id)
		}
	}
	p, plan := of.Part()
	if p != nil && (p.Done != uint64(len(m.done)) || p.Counters[0] != m.counts) {
		t.Fatalf("%d buckets are done and %d items counted, want %d and %d", p.Done, p.Counters[0], len(m.done), m.counts)
	}
	if plan != nil && len(of.Open()) > int(plan.Workers) {
		t.Fatalf("%d workers have buckets, want %d at most", len(of.Open()), plan.Workers)
	}
	if of.Active()+1 > mostWorkers { // those of the partition before may not have ended
		t.Fatalf("%d workers, want %d at most", of.Active()+1, mostWorkers)
	}
	if parent := m.task(parent); parent.Final() && len(m.has) > 0 {
		t.Fatalf("the work has ended, and %v is open", m.has)
	}
}

// restore goes on with the state as a snapshot has it.
func (w *world) restore(t *rapid.T) {
	sn := w.state.BeginSnapshot()
	for !sn.Step(100) {
	}
	r := projection.NewRestorer(0)
	for _, part := range sn.Parts() {
		if err := r.Add(part); err != nil {
			t.Fatal(err)
		}
	}
	restored, err := r.Done()
	if err != nil {
		t.Fatal(err)
	}
	if restored.Digest(nil) != w.state.Digest(nil) {
		t.Fatal("restored, the shard differs")
	}
	if a, b := fold.Of(restored), fold.Of(w.state); a.Bytes() != b.Bytes() || a.Permits() != b.Permits() {
		t.Fatalf("restored, works take %d bytes and %d permits, before %d and %d", a.Bytes(), a.Permits(), b.Bytes(), b.Permits())
	}
	w.state = restored
	w.state.MakeDue(w.now)
	w.takeOver()
}

// attempt carries out a step of an attempt as the loop of a worker does.
func (m *machine) step(t *rapid.T, id events.TaskID) {
	of := m.work()
	has := (*fold.Open)(nil)
	if of != nil {
		_, number := fold.Of(m.state).WorkerOf(id)
		has = of.Has(number)
	}
	var a moved
	switch {
	case has == nil && id == parent && (of == nil || !of.Planned || of.Finished):
		partitions := []events.WorkPartition{part("one", m.buckets[1], mostWorkers), part("two", m.buckets[2], 2)}
		for i := range partitions {
			partitions[i].Thresholds = []events.WorkThreshold{{Counter: "c", Limit: m.limit}}
		}
		a = m.plan("d", partitions...)
	case has == nil && id != parent && rapid.IntRange(0, 3).Draw(t, "joins") == 0:
		a = m.join(id)
	case has == nil:
		a = m.take(id)
	case rapid.IntRange(0, 2).Draw(t, "permit") == 0:
		a = m.permit(id, "c", rapid.Uint64Range(0, 5).Draw(t, "item"))
	case rapid.IntRange(0, 5).Draw(t, "gives back") == 0:
		a = m.move(id, works.Bucket{Returned: has.Bucket})
	default:
		a = m.end(id, has.Bucket)
	}
	m.obey(t, id, a)
}

// obey does what an attempt does by an answer.
func (m *machine) obey(t *rapid.T, id events.TaskID, a moved) {
	if current := m.task(id); current == nil || !current.OnNode() {
		return
	}
	switch works.State(a.State) {
	case works.Next:
		if id == parent {
			m.begin(a.Partition)
			return
		}
		m.complete(id, command.Succeeded)
	case works.Over:
		m.complete(id, command.Succeeded)
	case works.Wait:
		if id == parent {
			m.complete(id, command.Snoozed)
			return
		}
		m.complete(id, command.Succeeded)
	case works.Stop:
		m.complete(id, command.Released)
	}
}

// settle lets the work come to its end, with nothing in its way.
func (m *machine) settle(t *rapid.T) {
	for range 300 {
		m.rest()
		m.check(t)
		p := m.task(parent)
		switch {
		case p.Suspended:
			m.operate(parent, task.Resume)
			continue
		case p.Status == task.Success:
			return
		case p.Status == task.Failure && p.Error.Code == events.CodeThreshold && p.Final():
			m.must(&works.Reset{Task: string(parent), What: int64(events.ResetThresholds)})
			m.counts = 0 // what has a permit keeps it
			m.operate(parent, task.Retry)
		case p.Final():
			m.operate(parent, task.Retry)
		}
		m.now += 5000 // less than any snooze
		m.state.MakeDue(m.now)
		for _, id := range m.ready() {
			m.start(id, "n-1")
		}
		for _, id := range m.world.running() {
			if !m.task(id).OnNode() {
				continue
			}
			of := m.work()
			if of != nil && of.Planned && !of.Finished {
				_, number := fold.Of(m.state).WorkerOf(id)
				if has := of.Has(number); has != nil {
					m.obey(t, id, m.end(id, has.Bucket))
					continue
				}
			}
			m.stepOn(t, id)
		}
	}
	t.Fatalf("the work does not end: %+v", m.show())
}

// stepOn has an attempt without a bucket ask for what is next.
func (m *machine) stepOn(t *rapid.T, id events.TaskID) {
	of := m.work()
	if id == parent && (of == nil || !of.Planned || of.Finished) {
		m.step(t, id)
		return
	}
	m.obey(t, id, m.take(id))
}

func TestWork_EveryBucketIsDoneOnceWhateverHappens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &machine{
			world:   newWorld(t),
			buckets: map[int]uint64{1: rapid.Uint64Range(1, 8).Draw(t, "buckets"), 2: rapid.Uint64Range(1, 4).Draw(t, "buckets of the second")},
			limit:   rapid.Uint64Range(1, 12).Draw(t, "limit"),
			has:     map[uint32]uint64{},
			running: map[events.Ref]events.TaskID{},
		}
		m.submit(task.Policy{
			MaxAttempts: rapid.IntRange(1, 4).Draw(t, "attempts"),
			MaxLost:     rapid.IntRange(1, 3).Draw(t, "losses"),
			LostDelay:   time.Second,
			Backoff:     task.Backoff{Base: time.Second, Max: 10 * time.Second},
		})
		pick := func(t *rapid.T, ids []events.TaskID) events.TaskID {
			if len(ids) == 0 {
				t.Skip("none")
			}
			return rapid.SampledFrom(ids).Draw(t, "task")
		}
		t.Repeat(map[string]func(*rapid.T){
			"": m.check,
			"start": func(t *rapid.T) {
				m.start(pick(t, m.ready()), fmt.Sprint("n-", rapid.IntRange(1, 3).Draw(t, "node")))
			},
			"step":    func(t *rapid.T) { m.step(t, pick(t, m.world.running())) },
			"step2":   func(t *rapid.T) { m.step(t, pick(t, m.world.running())) },
			"step3":   func(t *rapid.T) { m.step(t, pick(t, m.world.running())) },
			"fail":    func(t *rapid.T) { m.complete(pick(t, m.world.running()), command.Failed) },
			"release": func(t *rapid.T) { m.complete(pick(t, m.world.running()), command.Released) },
			"lose":    func(t *rapid.T) { m.lose(fmt.Sprint("n-", rapid.IntRange(1, 3).Draw(t, "node"))) },
			"wait": func(*rapid.T) {
				m.now += 10_000
				m.state.MakeDue(m.now)
			},
			"turn":    func(*rapid.T) { m.turn() },
			"rest":    func(*rapid.T) { m.rest() },
			"restore": m.restore,
			"operate": func(t *rapid.T) {
				do := rapid.SampledFrom([]task.Operation{task.Cancel, task.Suspend, task.Resume, task.Resume, task.Retry, task.RunNow}).Draw(t, "do")
				m.decide(&command.Operate{Task: parent, Do: do})
			},
		})
		m.settle(t)
	})
}
