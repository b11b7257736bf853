package works

import (
	"encoding/json"
	"strings"

	"taskledger/engine/internal/command"
	"taskledger/events"
	"taskledger/internal/message"
	"taskledger/projection"
	"taskledger/projection/works"
	"taskledger/work/progress"
)

// Shown is a work as it travels.
type Shown struct {
	Task       string
	Life       uint64
	Version    uint64 // the last event of the task
	Run        int64
	Definition string
	PlannedAt  int64
	Now        int64 // by the owner's clock
	Planned    bool  // false = the run was reset
	Retried    bool  // the run has the failed buckets of the one before alone
	Finished   bool  // the task has ended with SUCCESS since the run was planned
	Asleep     bool  // the task waits for its workers
	Cleared    bool  // the counters were reset since an attempt of the task began
	Own        Own
	Current    int64  // the number of the last partition that has started; 0 = none
	Partitions []byte // as EncodePartitions writes them, where they were asked for
	Parts      []Part
	Open       []Open
	Workers    []Worker // that have not ended
	Kept       int64    // workers that have ended and are kept
	ErrorBytes int64    // of the errors that the run tells, or a stream in the day
	Uncertain  uint64   // permits that were counted without their items
	Permits    uint64   // that are remembered by their items
	Tried      uint64   // the bucket with which most attempts have failed; 0 = none
	TriedOften int64    // how many
	Stream     StreamShown
}

// Optional implements message.Optional.
func (*Shown) Optional() int { return 1 }

// Own is the work's own task as it travels.
type Own struct {
	Behavior  string
	Status    uint64
	Suspended bool
	Final     bool   // it has ended
	Node      string // the session that runs it; "" = it does not run
	Failure   []byte // the JSON of its last failure; empty = none
	StartedAt int64  // of the attempt that runs; 0 = none does
	Repeats   bool   // its run has ended, and nobody has asked for the repetition that follows
}

// Part is a partition of a run as it travels.
type Part struct {
	ID            string
	Mode          int64
	Workers       int64
	Threads       int64
	Buckets       uint64 // as planned
	Total         uint64 // of the run
	Done          uint64
	Started       int64
	Ended         int64
	Moved         int64
	Busy          int64
	BusyFrom      int64 // since then a bucket is open; Busy counts that time, too
	Counted       bool
	Expected      uint64
	ItemsDone     uint64
	ItemsFailed   uint64
	ItemsSkipped  uint64
	FailedBuckets uint64
	Spanned       bool
	Counters      []Counter
}

// Counter is a threshold as it travels.
type Counter struct {
	Name  string
	Count uint64
	Limit uint64
}

// Open is a bucket that a worker has.
type Open struct {
	Bucket  uint64
	Worker  int64
	Attempt uint64
	Node    string // the session that runs the attempt
	Since   int64
	Items   uint64 // that were processed, as far as the attempt has told
}

// Worker is a worker that has not ended.
type Worker struct {
	Number int64
	Task   string
	Node   string // the session that runs it; "" = it does not run
}

// show returns a work as it is now.
func show(state *projection.Shard, of *works.Work, now events.Millis, plan bool) Shown {
	s := Shown{
		Task:       string(of.ID),
		Life:       uint64(of.Life),
		Run:        int64(of.Run),
		Definition: of.Definition,
		PlannedAt:  int64(of.PlannedAt),
		Now:        int64(now),
		Planned:    of.Planned,
		Retried:    of.Retried,
		Finished:   of.Finished,
		Asleep:     of.Asleep,
		Cleared:    of.Cleared,
		Current:    int64(of.Current),
		Kept:       int64(of.Kept()),
		ErrorBytes: of.ErrorsTold(now),
		Uncertain:  of.Uncertain,
		Permits:    uint64(of.Permits()),
		Stream:     showStream(of),
	}
	bucket, failed := of.MostTried()
	s.Tried, s.TriedOften = bucket, int64(failed)
	if t := state.Task(of.ID); t != nil {
		s.Version, s.Own = uint64(t.Last), own(t)
	}
	if plan {
		s.Partitions = EncodePartitions(of.Partitions)
	}
	for i := range of.Parts {
		s.Parts = append(s.Parts, partOf(&of.Partitions[i], &of.Parts[i], now))
	}
	for _, o := range of.Open() {
		s.Open = append(s.Open, Open{
			Bucket:  o.Bucket,
			Worker:  int64(o.Worker),
			Attempt: uint64(o.Attempt),
			Node:    nodeOf(state, o.Attempt),
			Since:   int64(o.Since),
			Items:   itemsIn(state, of, &o),
		})
	}
	for _, w := range of.Workers() {
		if t := state.Task(w.ID); w.Active && t != nil {
			s.Workers = append(s.Workers, Worker{Number: int64(w.Number), Task: string(w.ID), Node: t.Node})
		}
	}
	return s
}

// own returns the work's own task.
func own(t *projection.Task) Own {
	is := Own{
		Behavior:  t.Kind.Behavior,
		Status:    uint64(t.Status),
		Suspended: t.Suspended,
		Final:     t.Final(),
		Node:      t.Node,
		Repeats:   t.Repeats(),
	}
	if t.OnNode() {
		is.StartedAt = int64(t.StartedAt)
	}
	if t.Error != nil {
		is.Failure, _ = json.Marshal(t.Error) // texts alone: it never fails
	}
	return is
}

func partOf(plan *events.WorkPartition, p *works.Part, now events.Millis) Part {
	part := Part{
		ID:            plan.ID,
		Mode:          int64(plan.Mode),
		Workers:       int64(plan.Workers),
		Threads:       int64(plan.Threads),
		Buckets:       plan.Buckets,
		Total:         p.Total,
		Done:          p.Done,
		Started:       int64(p.Started),
		Ended:         int64(p.Ended),
		Moved:         int64(p.Moved),
		Busy:          int64(p.Busy),
		BusyFrom:      int64(p.BusyFrom),
		Counted:       p.Counted,
		Expected:      p.Expected,
		ItemsDone:     p.Items.Done,
		ItemsFailed:   p.Items.Failed,
		ItemsSkipped:  p.Items.Skipped,
		FailedBuckets: p.FailedIn,
		Spanned:       p.Spanned,
	}
	if p.BusyFrom != 0 {
		part.Busy += int64(max(now-p.BusyFrom, 0))
	}
	for i, t := range plan.Thresholds {
		c := Counter{Name: t.Counter, Limit: t.Limit}
		if i < len(p.Counters) {
			c.Count = p.Counters[i]
		}
		part.Counters = append(part.Counters, c)
	}
	return part
}

// nodeOf returns the session that runs an attempt; "" = it is over.
func nodeOf(state *projection.Shard, started events.Ref) string {
	if t := state.Attempt(started); t != nil {
		return t.Node
	}
	return ""
}

// itemsIn returns how many items of an open bucket were processed, as far as its attempt has told.
func itemsIn(state *projection.Shard, of *works.Work, o *works.Open) uint64 {
	t := state.Attempt(o.Attempt)
	_, plan := of.Part()
	if t == nil || t.Progress == nil || plan == nil || t.Progress.Note != progress.Note(plan.ID, o.Bucket) {
		return 0
	}
	return uint64(max(t.Progress.Done, 0))
}

// answer answers a question about works.
func (o *atOwner) answer(c command.Command, now events.Millis, _ command.Budget) (command.Found, bool) {
	switch q := c.(type) {
	case *Show:
		return o.answerShow(q, now), true
	case *Position:
		return found(q.Linear, o.position(q)), true
	case *Left:
		return found(q.Linear, o.left(q)), true
	}
	return command.Found{}, false
}

func (o *atOwner) answerShow(q *Show, now events.Millis) command.Found {
	of := o.all.Work(events.TaskID(q.Task))
	if of == nil {
		without := o.without(events.TaskID(q.Task))
		return command.Found{Linear: q.Linear, Answer: func() command.Answer { return without }}
	}
	shown := show(o.state, of, now, q.Plan)
	return found(q.Linear, command.Answer{Data: message.Encode(&shown)})
}

// without returns the answer for a task without a work. Its text says why it has none; "" = there is no task.
func (o *atOwner) without(id events.TaskID) command.Answer {
	t := o.state.Task(id)
	if t == nil {
		return command.Answer{Code: command.AnswerNotFound}
	}
	if of, number := o.all.WorkerOf(id); of != nil {
		const say = "is worker %d of the work of task %s, which tells of all its workers"
		return command.Refused(command.AnswerNotFound, say, number, of.ID)
	}
	if of := workOf(t); of != "" && o.all.Work(of) == nil {
		return command.Refused(command.AnswerNotFound, "is a worker of the work of task %s, which is not there", of)
	}
	if of, h := o.all.HoldOf(id); h != nil {
		return command.Refused(command.AnswerNotFound,
			"holds changes of the stream of task %s, which tells of all its holds", of.ID)
	}
	const say = "has no work: its behavior %s is none, or no attempt has planned one yet"
	return command.Refused(command.AnswerNotFound, say, t.Kind.Behavior)
}

// workOf returns the task whose work a task was created for as a worker, as its parameters say, or its id where they
// are not held any more; "" = for none.
func workOf(t *projection.Task) events.TaskID {
	if t.ParamsElided && t.Params == nil {
		at := max(strings.LastIndex(string(t.ID), ".w"), strings.LastIndex(string(t.ID), "/w"), 0)
		if of := t.ID[:at]; events.WorkerNumber(of, t.ID) > 1 {
			return of
		}
		return ""
	}
	params, err := t.Params.JSON()
	if of := WorkerOf(params); err == nil && events.WorkerNumber(of, t.ID) > 1 {
		return of
	}
	return ""
}
