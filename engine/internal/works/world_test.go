package works_test

import (
	"maps"
	"slices"
	"sync"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/shard"
	"taskledger/engine/internal/works"
	"taskledger/events"
	"taskledger/integration/robustness/check"
	"taskledger/internal/message"
	"taskledger/projection"
	fold "taskledger/projection/works"
	"taskledger/store"
	"taskledger/task"
)

// tb has the methods that testing.T and rapid.T share.
type tb interface {
	Helper()
	Fatalf(format string, args ...any)
	Errorf(format string, args ...any)
}

const parent events.TaskID = "a/p"

// world drives the extension of an owner through its turns, as the owner of a shard does, and gives what is ready to
// nodes.
type world struct {
	t     tb
	state *projection.Shard
	shard.Extension
	now     events.Millis
	entry   events.Builder
	entries []*events.Entry
	told    []events.Event
	stopped []events.TaskID // whose attempts nodes were told to end
	room    command.Room
	budget  int
	members *store.Membership // nil = all read everything
	mu      sync.Mutex        // of attempts, whose threads ask side by side

	promises check.WorkFold // as the harnesses fold them
	unread   bool           // a node was present that cannot read events of works
	drops    bool           // journals are dropped: what they alone hold is not kept
}

func newWorld(t tb) *world {
	w := &world{t: t, state: projection.NewShard(0), now: 1_800_000_000_000, budget: 64}
	w.takeOver()
	return w
}

// takeOver gives the shard to another owner.
func (w *world) takeOver() {
	w.Extension = works.AtOwner(w.state)
	w.Served()
}

// turn takes a turn in which something happens.
func (w *world) turn(happens ...func(d *command.Decider)) {
	w.t.Helper()
	if due := w.NextDue(); due != 0 && due <= w.now {
		w.MakeDue(w.now)
	}
	w.entry.Reset(events.Entry{Number: w.state.Number + 1, Owner: "n1-s", Time: w.now, Prev: w.state.Hash})
	d := &command.Decider{
		State: w.state,
		Entry: &w.entry,
		Now:   w.now,
		Wall:  w.now,
		Room:  w.room,

		ParamsMayGo: w.drops,

		Members: w.members,
		Note:    func(_ *projection.Task, ev *events.Event) { w.Note(ev) },
		Stop:    func(t *projection.Task, _ string) { w.stopped = append(w.stopped, t.ID) },
	}
	d.Follow = func(d *command.Decider, ev *events.Event) { w.Follow(d, ev) }
	for _, f := range happens {
		f(d)
	}
	w.Decide(d, command.Budget{Items: w.budget, Over: func() bool { return false }})
	if d.Err != nil || len(d.Bugs) > 0 {
		w.t.Fatalf("%v %v", d.Err, d.Bugs)
	}
	if len(w.entry.Entry.Events) == 0 {
		return
	}
	data, err := w.entry.Seal()
	if err != nil {
		w.t.Fatalf("%v", err)
	}
	stored, err := events.Decode(data)
	if err != nil {
		w.t.Fatalf("%v", err)
	}
	w.entries = append(w.entries, stored)
	w.told = append(w.told, stored.Events...)
	w.hold(stored)
	w.state.Seal(&w.entry.Entry)
}

// rest takes turns until none is due.
func (w *world) rest() {
	w.t.Helper()
	for range 1000 {
		w.turn()
		if due := w.NextDue(); due == 0 || due > w.now+1 {
			return
		}
		w.now++
	}
	w.t.Fatalf("a turn is always due")
}

// decide decides a command in a turn of its own.
func (w *world) decide(c command.Command) (a command.Answer) {
	w.t.Helper()
	w.turn(func(d *command.Decider) { a = d.Decide(c) })
	return a
}

// must is decide of a command that is carried out.
func (w *world) must(c command.Command) command.Answer {
	w.t.Helper()
	a := w.decide(c)
	if a.Code != command.AnswerOK {
		w.t.Fatalf("%T: answer %d: %s", c, a.Code, a.Text)
	}
	return a
}

// submit submits the parent.
func (w *world) submit(p task.Policy) {
	w.t.Helper()
	policy, err := p.Complete()
	if err != nil {
		w.t.Fatalf("%v", err)
	}
	w.must(&command.Submit{Task: parent, Behavior: "work", Policy: policy, Params: events.JSON([]byte("{}")), NotBefore: w.now})
}

func (w *world) task(id events.TaskID) *projection.Task { return w.state.Task(id) }

func (w *world) work() *fold.Work { return fold.Of(w.state).Work(parent) }

// ready returns the ids of the tasks that may start, sorted.
func (w *world) ready() (ids []events.TaskID) {
	for t := range w.state.Tasks() {
		if !t.OnNode() && !t.Suspended && t.Due != 0 && t.Due <= w.now {
			ids = append(ids, t.ID)
		}
	}
	slices.Sort(ids)
	return ids
}

// running returns the ids of the tasks that run, sorted.
func (w *world) running() (ids []events.TaskID) {
	for t := range w.state.Tasks() {
		if t.OnNode() {
			ids = append(ids, t.ID)
		}
	}
	slices.Sort(ids)
	return ids
}

// start starts a task on a node.
func (w *world) start(id events.TaskID, node string) {
	w.t.Helper()
	w.turn(func(d *command.Decider) { d.Start(w.task(id), node, 0, 9*time.Second) })
}

// moved is the answer to an attempt.
type moved struct {
	State     int64
	Run       int64
	Partition int64
	Bucket    uint64
	Differs   bool
	Granted   []byte
	Why       string
}

func (w *world) read(a command.Answer) (m moved) {
	w.t.Helper()
	if err := message.Decode(a.Data, 1<<20, &m); err != nil {
		w.t.Fatalf("answer %d %s: %v", a.Code, a.Text, err)
	}
	return m
}

func (w *world) attempt(id events.TaskID) (task string, started uint64, node string) {
	w.t.Helper()
	t := w.task(id)
	if t == nil || !t.OnNode() {
		w.t.Fatalf("%s does not run", id)
	}
	return string(id), uint64(t.Started), t.Node
}

// plan plans the parent's work.
func (w *world) plan(definition string, partitions ...events.WorkPartition) moved {
	w.t.Helper()
	c := &works.Plan{Definition: definition, Partitions: works.EncodePartitions(partitions)}
	c.Task, c.Started, c.Node = w.attempt(parent)
	return w.read(w.must(c))
}

// join has a worker ask for the plan.
func (w *world) join(id events.TaskID) moved {
	w.t.Helper()
	c := &works.Plan{Parent: string(parent)}
	c.Task, c.Started, c.Node = w.attempt(id)
	return w.read(w.must(c))
}

// begin begins a partition.
func (w *world) begin(partition int64) moved {
	w.t.Helper()
	c := &works.Begin{Partition: partition}
	c.Task, c.Started, c.Node = w.attempt(parent)
	return w.read(w.must(c))
}

// take asks for a bucket.
func (w *world) take(id events.TaskID) moved {
	w.t.Helper()
	return w.move(id, works.Bucket{Want: true})
}

// end ends a bucket and asks for another one.
func (w *world) end(id events.TaskID, bucket uint64) moved {
	w.t.Helper()
	return w.move(id, works.Bucket{Ended: bucket, Done: 1, Want: true})
}

func (w *world) move(id events.TaskID, c works.Bucket) moved {
	w.t.Helper()
	c.Task, c.Started, c.Node = w.attempt(id)
	return w.read(w.must(&c))
}

// permit asks for permits.
func (w *world) permit(id events.TaskID, counter string, items ...uint64) moved {
	w.t.Helper()
	c := &works.Permits{Counter: counter, Items: items}
	c.Task, c.Started, c.Node = w.attempt(id)
	return w.read(w.must(c))
}

// complete ends an attempt.
func (w *world) complete(id events.TaskID, how command.Completion, change ...func(*command.Complete)) {
	w.t.Helper()
	t := w.task(id)
	c := &command.Complete{Task: id, Started: t.Started, Node: t.Node, How: how}
	switch how {
	case command.Failed:
		c.Error = &events.Error{Code: events.CodeItems}
		c.ByPolicy = true
	case command.Snoozed:
		c.Wait = time.Hour
	}
	for _, f := range change {
		f(c)
	}
	w.must(c)
}

// lose loses a node.
func (w *world) lose(node string) {
	w.t.Helper()
	w.turn(func(d *command.Decider) {
		if !d.Lose(node) {
			w.t.Fatalf("the entry is full")
		}
	})
}

// operate carries out an operation.
func (w *world) operate(id events.TaskID, do task.Operation) {
	w.t.Helper()
	w.must(&command.Operate{Task: id, Do: do})
}

// show shows the work.
func (w *world) show() (s works.Shown) {
	w.t.Helper()
	found, is := w.Answer(&works.Show{Task: string(parent), Plan: true}, w.now, command.Budget{})
	if !is {
		w.t.Fatalf("no answer")
	}
	if err := message.Decode(found.Answer().Data, 1<<20, &s); err != nil {
		w.t.Fatalf("%v", err)
	}
	return s
}

// open returns which worker has which bucket.
func (w *world) open() map[uint32]uint64 {
	all := map[uint32]uint64{}
	for _, o := range w.work().Open() {
		all[o.Worker] = o.Bucket
	}
	return all
}

func (w *world) wantOpen(want map[uint32]uint64) {
	w.t.Helper()
	if got := w.open(); !maps.Equal(got, want) {
		w.t.Errorf("workers have buckets %v, want %v", got, want)
	}
}

// part is a partition of so many buckets for so many workers.
func part(id string, buckets uint64, workers uint32) events.WorkPartition {
	return events.WorkPartition{ID: id, Buckets: buckets, Workers: workers, Threads: 1}
}

// worker is the id of a worker.
func worker(n uint32) events.TaskID { return events.WorkerID(parent, n) }

// inWork is a world with a work under way: the parent and so many workers have a bucket each.
func inWork(t tb, buckets uint64, workers uint32, p task.Policy, change ...func(*events.WorkPartition)) *world {
	t.Helper()
	w := newWorld(t)
	w.submit(p)
	w.start(parent, "n-1")
	partition := part("all", buckets, workers)
	for _, f := range change {
		f(&partition)
	}
	if m := w.plan("5f", partition); works.State(m.State) != works.Next || m.Partition != 1 {
		t.Fatalf("planned: %+v", m)
	}
	w.begin(1)
	if m := w.take(parent); works.State(m.State) != works.Go || m.Bucket != 1 {
		t.Fatalf("first bucket: %+v", m)
	}
	w.rest()
	for n := uint32(2); n <= workers; n++ {
		w.start(worker(n), "n-"+string(rune('0'+n)))
		w.join(worker(n))
		if m := w.take(worker(n)); works.State(m.State) != works.Go || m.Bucket != uint64(n) {
			t.Fatalf("bucket of worker %d: %+v", n, m)
		}
	}
	return w
}
