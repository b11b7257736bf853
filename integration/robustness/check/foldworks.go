package check

import (
	"fmt"
	"slices"

	"taskledger/events"
)

// WorkFold folds the works of a shard and the tasks that process their buckets. It holds that each bucket is done once
// in a run, by one attempt at a time, which runs; that the end of an attempt returns its bucket in the same entry, and
// the least free one is given first; that permits keep their limits, and that nothing begins while a work is suspended
// or once it has ended. Of a stream it holds that only the attempt that has its bucket moves its token and holds
// changes, that a key has one hold at a time, with a task, and that a hold ends once all of its changes are processed.
// The zero value has folded no event.
type WorkFold struct {
	tasks map[events.TaskID]*hand
	byID  map[events.TaskID]*job
	moved map[events.TaskID]bool // works that the entry may have changed

	granted map[grant]uint64       // permits, over all lives of a task
	lost    bool                   // a part of the journal, which may have given others
	left    map[events.TaskID]bool // tasks that were of a work when it was lost, and those that were made for them since
	broken  map[events.TaskID]bool // tasks of which a work was broken, which gave others
}

// PartOfRun names a partition of a run of a work.
type PartOfRun struct {
	Run       uint32
	Partition string
}

type grant struct {
	id events.TaskID
	of PartOfRun
}

// Granted returns how many permits a partition of a run has given, in all lives of the task; false = it is not known.
func (s *WorkFold) Granted(id events.TaskID, of PartOfRun) (n uint64, known bool) {
	return s.granted[grant{id, of}], !s.lost && !s.broken[id]
}

// Unknown reports whether something of the works of a task may be lost, or is corrupt.
func (s *WorkFold) Unknown(id events.TaskID) bool { return s.lost || s.broken[id] }

// job is the work of a task.
type job struct {
	own      *hand
	workers  map[uint32]*hand // by number; 1 is the work's own task
	last     uint32           // the highest number of a worker so far
	broken   bool             // it had an illegal event: what follows tells nothing
	planned  bool             // false = it was reset
	run      uint32
	finished bool // its task has succeeded since the run was planned
	asleep   bool // its task has snoozed
	parts    []part
	current  int // the number of the last partition that has started; 0 = none
	open     map[uint64]holder
	since    events.Millis   // when a bucket was given last, which a stream has alone
	permits  map[permit]bool // of buckets that have not ended
	stream   foldedStream
}

// part is a partition of a run.
type part struct {
	plan    events.WorkPartition
	within  *marks // buckets of the run; nil = all
	ended   bool
	done    map[uint64]bool
	low     uint64 // each bucket before it is done, or none of the run
	items   events.ItemCounts
	counted []uint64 // by threshold
	failed  marks    // buckets with failed items

	simulated string // the token up to which a stream has simulated that leaves its token
}

// holder has an open bucket.
type holder struct {
	worker  uint32
	attempt events.Ref
}

type permit struct {
	counter      int
	bucket, item uint64
}

// The limits of what a work remembers.
const (
	mostPermits = 100_000 // beyond them an item may be counted again
	mostRanges  = 16_384  // of failed buckets; beyond them a partition has a span
)

// WorkProblem is a broken promise of a work.
type WorkProblem struct {
	Task events.TaskID // of the work
	Text string
}

// Lost lets works and their tasks be in any state: what was lost of the journal may have changed them.
func (s *WorkFold) Lost() {
	left := s.left
	if left == nil {
		left = map[events.TaskID]bool{}
	}
	for id, t := range s.tasks {
		if s.workOf(t) != nil || t.held != nil {
			left[id] = true
		}
	}
	*s = WorkFold{lost: true, left: left}
}

// Left reports whether a task is of a work that a loss has left unknown: why something happens to it is not known.
func (s *WorkFold) Left(id events.TaskID) bool { return s.left[id] }

// Apply folds the next event of a task, which the fold of the task allows, or says what forbids it; "" for nothing. It
// returns the tasks that were kept with a work, or with a hold, which the event has removed.
func (s *WorkFold) Apply(ev *events.Event) (problem string, givenUp []events.TaskID) {
	t := s.hand(ev)
	if t == nil {
		if s.lost && isOfWork(ev.Kind()) { // its task was there before the loss
			s.left[ev.Task] = true
		}
		return "", nil
	}
	if b, created := ev.Body.(*events.Created); created && s.left[b.Ties.Parent] {
		s.left[ev.Task] = true
	}
	problem = s.judge(t, ev)
	s.follow(t, ev)
	of := s.workOf(t)
	if of != nil {
		if problem != "" {
			s.leave(of)
		}
		s.touch(of)
	}
	if ev.Kind() == events.KindDeleted {
		givenUp = s.Forgotten(ev.Task)
	}
	return problem, givenUp
}

// judge folds what an event says of a work, or says what forbids it.
func (s *WorkFold) judge(t *hand, ev *events.Event) string {
	of := s.byID[ev.Task]
	switch b := ev.Body.(type) {
	case *events.Created:
		if of := s.byID[b.Ties.Parent]; of != nil {
			if t.held = of.stream.join(of.own.id, ev); t.held != nil {
				s.touch(of)
				return ""
			}
		}
		return s.join(t, b, ev.At)
	case *events.WorkPlanned:
		if of == nil {
			return s.begin(t).plan(b)
		}
	}
	switch {
	case of == nil && isOfWork(ev.Kind()):
		return "of a task without a work"
	case of == nil || of.broken:
		return ""
	}
	problem := of.apply(ev)
	if b, moved := ev.Body.(*events.HoldMoved); moved && problem == "" && b.Done > 0 {
		s.tasks[events.HoldID(ev.Task, b.Hold)].forgive() // it runs
	}
	if b, permits := ev.Body.(*events.PermitsGranted); permits && problem == "" {
		if s.granted == nil {
			s.granted = map[grant]uint64{}
		}
		s.granted[grant{ev.Task, PartOfRun{of.run, of.part().plan.ID}}] += uint64(len(b.Items))
	}
	return problem
}

// isOfWork reports whether events of a kind tell of works alone.
func isOfWork(k events.Kind) bool {
	return k >= events.KindWorkPlanned && k <= events.KindHoldMoved
}

// leave leaves a work alone from now on.
func (s *WorkFold) leave(of *job) {
	if s.broken == nil {
		s.broken = map[events.TaskID]bool{}
	}
	of.broken, s.broken[of.own.id] = true, true
}

// touch has a work looked at when the entry ends.
func (s *WorkFold) touch(of *job) {
	if s.moved == nil {
		s.moved = map[events.TaskID]bool{}
	}
	s.moved[of.own.id] = true
}

func (s *WorkFold) begin(t *hand) *job {
	of := &job{
		own:     t,
		workers: map[uint32]*hand{1: t},
		last:    1,
		open:    map[uint64]holder{},
	}
	if s.byID == nil {
		s.byID = map[events.TaskID]*job{}
	}
	s.byID[t.id] = of
	t.forgive()
	return of
}

// Forgotten forgets a task, and returns the ended tasks that were kept with its work, or its hold.
func (s *WorkFold) Forgotten(id events.TaskID) (givenUp []events.TaskID) {
	t := s.tasks[id]
	if t == nil {
		return nil
	}
	delete(s.tasks, id)
	if of := s.byID[id]; of != nil {
		delete(s.byID, id)
		of.stream.leave()
		for number, w := range of.workers {
			if number > 1 {
				w.of = nil
				if w.final {
					givenUp = append(givenUp, w.id)
				}
			}
		}
		slices.Sort(givenUp)
		return givenUp
	}
	if t.of != nil {
		delete(t.of.workers, t.number)
	}
	if t.held != nil && !t.held.gone {
		of := s.byID[t.held.work]
		if of.stream.drop(t.held.number); of.own.final && !of.stream.lasts() {
			return []events.TaskID{of.own.id}
		}
	}
	return nil
}

// EndEntry returns what the entry that ends should have had and does not have: the return of the bucket of an attempt
// that it ended, and the end of a partition whose last bucket it ended.
func (s *WorkFold) EndEntry() (problems []WorkProblem) {
	for id := range s.moved {
		of := s.byID[id]
		if of == nil || of.broken {
			continue
		}
		if problem := of.owes(); problem != "" {
			s.leave(of)
			problems = append(problems, WorkProblem{id, problem})
		}
	}
	clear(s.moved)
	return problems
}

// owes says what the work should have by the end of an entry; "" for nothing.
func (of *job) owes() string {
	for bucket, has := range of.open {
		if w := of.workers[has.worker]; w == nil || w.attempt != has.attempt {
			return fmt.Sprintf("attempt %d of worker %d has ended, and bucket %d is not returned in the same entry", has.attempt, has.worker, bucket)
		}
	}
	if len(of.open) > 0 && of.own.over {
		return fmt.Sprintf("its run has ended, and %d buckets are not returned in the same entry", len(of.open))
	}
	if p := of.part(); p != nil && uint64(len(p.done)) == p.total() {
		return fmt.Sprintf("all buckets of partition %d are done, and it does not end in the same entry", of.current)
	}
	return of.stream.owes()
}

// Remains returns the workers that go on although their works ended before a time.
func (s *WorkFold) Remains(before events.Millis) (problems []WorkProblem) {
	for id, of := range s.byID {
		for _, w := range of.workers {
			if w != of.own && !of.broken && of.own.final && of.own.at < before && !w.final && w.at < before {
				problems = append(problems, WorkProblem{id, fmt.Sprintf("it has ended, and its worker %s goes on", w.id)})
			}
		}
	}
	return problems
}

// Items returns how many items of the run of a task's work have ended in buckets that are done, and how many permits
// each partition has given, by counter; false = it has no work, or one that is corrupt.
func (s *WorkFold) Items(id events.TaskID) (all []PartCounts, known bool) {
	of := s.byID[id]
	if of == nil || of.broken {
		return nil, false
	}
	for i := range of.parts {
		p := &of.parts[i]
		c := PartCounts{
			ID:      p.plan.ID,
			Items:   p.items,
			Buckets: uint64(len(p.done)),
			Permits: map[string]uint64{},
		}
		for i, t := range p.plan.Thresholds {
			c.Permits[t.Counter] = p.counted[i]
		}
		all = append(all, c)
	}
	return all, true
}

// PartCounts tells what a partition of a run has come to.
type PartCounts struct {
	ID      string
	Items   events.ItemCounts
	Buckets uint64 // that are done
	Permits map[string]uint64
}

// workOf returns the work that a task is of, or is a worker of.
func (s *WorkFold) workOf(t *hand) *job {
	if of := s.byID[t.id]; of != nil {
		return of
	}
	return t.of
}

// part returns the partition under way; nil = none is.
func (of *job) part() *part {
	if !of.planned || of.current == 0 || of.parts[of.current-1].ended {
		return nil
	}
	return &of.parts[of.current-1]
}

// over reports whether all partitions of the run have ended.
func (of *job) over() bool {
	return of.planned && of.current == len(of.parts) && of.parts[of.current-1].ended
}

// bars says why nothing of the work begins; "" for nothing.
func (of *job) bars() string {
	switch {
	case of.own.suspended:
		return "the work is suspended"
	case of.own.cancelled:
		return "the work is cancelled"
	case of.own.over:
		return "the work has ended"
	}
	return ""
}
