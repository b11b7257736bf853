// Package works is the fold of the works of a shard: which buckets of a task are done, which worker has which of those
// that are open, and what was counted. It is pure: state follows from events alone.
package works

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/btree"

	"taskledger/events"
	"taskledger/projection/extension"
)

// Limits of what a shard holds.
const (
	// MaxWorks bounds the works of a shard; of those whose task has ended the oldest are forgotten for others.
	MaxWorks = 1000
	// MaxFailedRanges bounds the ranges of buckets with failed items that a run remembers. Beyond it a partition
	// remembers the span from its first such bucket to its last.
	MaxFailedRanges = 16_384
	// MaxPermits bounds the permits that a work remembers by their items. Beyond it they are counted alone.
	MaxPermits = 100_000
	// MaxShardPermits bounds those of all works of a shard.
	MaxShardPermits = 1 << 20
	// MaxErrorBytes bounds the texts of errors that a run tells, or a stream in a day. Beyond it errors are counted alone.
	MaxErrorBytes = 64 << 20
	// MaxKeptWorkers bounds the ended workers that are kept with a work, and MaxKeptBytes what those of a shard take.
	MaxKeptWorkers = 1000
	MaxKeptBytes   = 16 << 20
	// MaxBytes bounds what the works of a shard take.
	MaxBytes = 64 << 20
)

// Work is the work of a task as it is in the state: read only.
type Work struct {
	ID   events.TaskID // of the task, which is its first worker
	Life events.Ref    // of the task

	Planned    bool // the run is planned; false = it was reset
	Run        uint32
	Definition string
	Partitions []events.WorkPartition // never changed
	PlannedAt  events.Millis
	Retried    bool // the run has the failed buckets of the one before alone

	Current    int // the number of the last partition that has started; 0 = none
	Parts      []Part
	ErrorBytes int64  // of the errors that the run tells, or the stream has told on the day of its last move: see ErrorsTold
	Uncertain  uint64 // permits that were counted without their items

	Finished bool // its task has ended with SUCCESS since the run was planned
	Asleep   bool // its task waits for its workers: it has snoozed
	Final    bool // its task has ended
	Cleared  bool // its counters were reset since an attempt of its task began

	Stream *Stream // nil = no stream has recorded anything

	alive   events.Millis // when an attempt of the work last gave a sign of life
	open    []Open        // by bucket
	tries   []try         // by bucket
	permits *btree.BTreeG[permit]
	workers map[uint32]*Worker // by number
	last    uint32             // the highest number of a worker so far
	kept    int                // of the workers, those that have ended
}

// Part tells how far a partition of a run has come.
type Part struct {
	Started  events.Millis // 0 = it has not
	Ended    events.Millis // 0 = it has not
	Moved    events.Millis // when its last bucket ended, or a stream last processed something; 0 = nothing yet
	Busy     events.Millis // how long buckets were open, without the time since BusyFrom
	BusyFrom events.Millis // since then one is; 0 = none is
	Counted  bool          // Expected is known
	Expected uint64        // items
	Items    events.ItemCounts
	Total    uint64   // buckets of the run
	Done     uint64   // buckets of the run that have ended
	Counters []uint64 // what each threshold's counter has counted
	Spanned  bool     // failed buckets are a span: not each bucket between has failed items
	FailedIn uint64   // buckets that had failed items, each time they ended
	// Simulated is the token up to which a stream has simulated that leaves its token where it is; "" = nothing yet.
	Simulated string

	failed Ranges
	taken  Ranges // buckets that are done or open, or are none of the run
}

// Open is a bucket that a worker has.
type Open struct {
	Bucket  uint64
	Worker  uint32
	Attempt events.Ref // the Started of the worker's attempt
	Since   events.Millis
}

// try counts how often an attempt has failed, or was lost, with a bucket that has not ended.
type try struct {
	bucket uint64
	failed uint32
	lost   uint32
}

// permit lets an item of a bucket that has not ended count once.
type permit struct {
	bucket  uint64 // or the stage of a stream
	counter int
	item    uint64
}

func permitBefore(a, b permit) bool {
	return cmp.Or(cmp.Compare(a.bucket, b.bucket), cmp.Compare(a.counter, b.counter), cmp.Compare(a.item, b.item)) < 0
}

func newPermits() *btree.BTreeG[permit] {
	return btree.NewBTreeGOptions(permitBefore, btree.Options{NoLocks: true})
}

// Worker is a task that processes buckets of a work. Number 1 is the work's own task.
type Worker struct {
	Number uint32
	ID     events.TaskID
	Life   events.Ref
	Active bool // it has not ended
	Tries       // since a bucket of the work ended
	bytes  int64
}

// Tries counts attempts of a task since it got on, as its policy does.
type Tries struct {
	Lost   uint32
	Failed uint32
}

// forgive has attempts count anew.
func (t *Tries) forgive() { *t = Tries{} }

// Works are the works of a shard. They are not safe for concurrent use.
type Works struct {
	byParent  map[events.TaskID]*Work
	byWorker  map[events.TaskID]workerOf
	byHold    map[events.TaskID]holdOf
	spent     map[events.TaskID]spent // tasks of holds that are gone
	bytes     int64                   // of works
	keptBytes int64                   // of ended workers
	permits   int
	shard     extension.Shard
	last      events.Ref // while rows are read: the latest event that one names
}

// workerOf is which worker of a work a task is.
type workerOf struct {
	work   *Work
	number uint32
}

func newWorks(shard extension.Shard) *Works {
	return &Works{
		byParent: map[events.TaskID]*Work{},
		byWorker: map[events.TaskID]workerOf{},
		byHold:   map[events.TaskID]holdOf{},
		spent:    map[events.TaskID]spent{},
		shard:    shard,
	}
}

// Work returns the work of a task, nil if it has none.
func (s *Works) Work(id events.TaskID) *Work { return s.byParent[id] }

// Tasks yields the tasks that have a work, in no order.
func (s *Works) Tasks() iter.Seq[events.TaskID] { return maps.Keys(s.byParent) }

// WorkerOf returns the work that a task is a worker of, and its number; nil = of none. The work's own task is number 1.
func (s *Works) WorkerOf(id events.TaskID) (of *Work, number uint32) {
	if of := s.byParent[id]; of != nil {
		return of, 1
	}
	w := s.byWorker[id]
	return w.work, w.number
}

var _ extension.Crew = (*Works)(nil)

// MadeFor implements extension.Crew: workers were made for the work's own task, and go along with it, and so were the
// tasks of holds, which do not.
func (s *Works) MadeFor(id events.TaskID) (lead events.TaskID, along bool) {
	if w, is := s.byWorker[id]; is {
		return w.work.ID, true
	}
	if !s.IsHold(id) {
		return "", false
	}
	return id[:max(strings.LastIndex(string(id), ".h"), strings.LastIndex(string(id), "/h"), 0)], false
}

// Leads implements extension.Crew: a task with a work does.
func (s *Works) Leads(id events.TaskID) bool { return s.byParent[id] != nil }

// Led implements extension.Crew.
func (s *Works) Led(id events.TaskID) (active []events.TaskID) {
	of := s.byParent[id]
	if of == nil {
		return nil
	}
	for _, w := range of.Workers() {
		if w.Active {
			active = append(active, w.ID)
		}
	}
	return active
}

// Tries implements extension.Crew: it counts since the work, or the hold, got on.
func (s *Works) Tries(id events.TaskID, now events.Millis) (lost, failed int, of bool) {
	if len(s.byParent) == 0 && len(s.spent) == 0 {
		return 0, 0, false
	}
	is, number := s.WorkerOf(id)
	if is == nil {
		_, gone := s.spent[id]
		if _, h := s.HoldOf(id); h != nil {
			return int(h.Lost), int(h.Failed), true
		}
		return 0, 0, gone
	}
	if is.goesOn(number, now) {
		return 0, 0, true
	}
	w := is.workers[number]
	return int(w.Lost), int(w.Failed), true
}

// Full reports whether the shard has as many works as it may, none of which can be forgotten.
func (s *Works) Full() bool { return len(s.byParent) >= MaxWorks && s.oldestFinal() == nil }

// Len returns the number of works.
func (s *Works) Len() int { return len(s.byParent) }

// Bytes is about how much room the works take in a snapshot.
func (s *Works) Bytes() int64 { return s.bytes }

// Permits counts the permits that are remembered by their items.
func (s *Works) Permits() int { return s.permits }

// All yields every work, in no order.
func (s *Works) All(yield func(*Work) bool) {
	for _, of := range s.byParent {
		if !yield(of) {
			return
		}
	}
}

// Part returns the partition that is under way, nil if none is, and what was planned of it.
func (w *Work) Part() (*Part, *events.WorkPartition) {
	if !w.Planned || w.Current == 0 || w.Parts[w.Current-1].Ended != 0 {
		return nil, nil
	}
	return &w.Parts[w.Current-1], &w.Partitions[w.Current-1]
}

// Over reports whether all partitions of the run have ended.
func (w *Work) Over() bool {
	return w.Planned && w.Current == len(w.Parts) && w.Parts[w.Current-1].Ended != 0
}

// Open returns the buckets that workers have, by number.
func (w *Work) Open() []Open { return w.open }

// Has returns the bucket that a worker has; nil = it has none.
func (w *Work) Has(worker uint32) *Open {
	for i := range w.open {
		if w.open[i].Worker == worker {
			return &w.open[i]
		}
	}
	return nil
}

// longAttempt is the time after which an attempt has outlived whatever ended those before it: no step of the wait
// after a loss is longer, unless a policy begins with a longer one.
const longAttempt = events.Millis(time.Hour / time.Millisecond)

// goesOn reports whether the attempt of a worker has had the bucket of a stream for so long, at a time, that those
// before it count no more. A stream may have neither an end nor changes for years.
func (w *Work) goesOn(worker uint32, now events.Millis) bool {
	_, plan := w.Part()
	has := w.Has(worker)
	return plan != nil && plan.Form != events.FormBuckets && has != nil && now-has.Since >= longAttempt
}

// Free returns the number of buckets that nobody has and that are not done, and the least of them.
func (w *Work) Free() (count, least uint64) {
	p, _ := w.Part()
	if p == nil {
		return 0, 0
	}
	if count = p.Total - p.Done - uint64(len(w.open)); count == 0 {
		return 0, 0
	}
	return count, p.taken.Absent(1)
}

// IsDone reports whether a bucket of the partition under way is done, or none of the run.
func (w *Work) IsDone(bucket uint64) bool {
	p, _ := w.Part()
	return p != nil && p.taken.Has(bucket) && w.find(bucket) < 0
}

// Tried returns how many attempts have failed with a bucket that has not ended.
func (w *Work) Tried(bucket uint64) uint32 {
	at, found := slices.BinarySearchFunc(w.tries, bucket, byTry)
	if !found {
		return 0
	}
	return w.tries[at].failed
}

// MostTried returns the bucket with which most attempts have failed, and how many; 0 = there is none.
func (w *Work) MostTried() (bucket uint64, failed uint32) {
	for _, t := range w.tries {
		if t.failed > failed {
			bucket, failed = t.bucket, t.failed
		}
	}
	return bucket, failed
}

func byTry(t try, bucket uint64) int { return cmp.Compare(t.bucket, bucket) }

// MostLost returns the bucket with which most attempts were lost, and how many; 0 = there is none.
func (w *Work) MostLost() (bucket uint64, lost uint32) {
	for _, t := range w.tries {
		if t.lost > lost {
			bucket, lost = t.bucket, t.lost
		}
	}
	return bucket, lost
}

// Failed yields the ranges of the buckets of a partition, by its number, that had failed items.
func (w *Work) Failed(partition int) func(yield func(from, to uint64) bool) {
	return w.Parts[partition-1].failed.All
}

// FailedBuckets counts the buckets of a further run that takes those with failed items.
func (w *Work) FailedBuckets() (n uint64) {
	for i := range w.Parts {
		n += w.Parts[i].failed.Count()
	}
	return n
}

// Worker returns a worker by its number, nil if there is none.
func (w *Work) Worker(number uint32) *Worker { return w.workers[number] }

// Workers returns the workers by number, without the work's own task.
func (w *Work) Workers() []*Worker {
	all := make([]*Worker, 0, len(w.workers))
	for n, is := range w.workers {
		if n != 1 {
			all = append(all, is)
		}
	}
	slices.SortFunc(all, func(a, b *Worker) int { return cmp.Compare(a.Number, b.Number) })
	return all
}

// Active counts the workers that have not ended, without the work's own task.
func (w *Work) Active() (n int) {
	for number, is := range w.workers {
		if number != 1 && is.Active {
			n++
		}
	}
	return n
}

// Kept counts the ended workers that are kept.
func (w *Work) Kept() int { return w.kept }

// Permits counts the permits that are remembered by their items.
func (w *Work) Permits() int { return w.permits.Len() }

// Last is the highest number that a worker has had.
func (w *Work) Last() uint32 { return max(w.last, 1) }

// find returns the place of an open bucket, negative if it is not open.
func (w *Work) find(bucket uint64) int {
	at, found := slices.BinarySearchFunc(w.open, bucket, func(o Open, n uint64) int { return cmp.Compare(o.Bucket, n) })
	if !found {
		return -1 - at
	}
	return at
}

// Counter returns the place of a counter among the thresholds of the partition under way, -1 if it has none.
func (w *Work) Counter(name string) int {
	_, plan := w.Part()
	if plan == nil {
		return -1
	}
	return slices.IndexFunc(plan.Thresholds, func(t events.WorkThreshold) bool { return t.Counter == name })
}

// What a work takes in a snapshot besides its texts.
const (
	workBytes   = 300
	partBytes   = 120
	openBytes   = 40
	rangeBytes  = 5
	permitBytes = 12
	workerBytes = 100
)

// size is about what a work takes in a snapshot.
func (w *Work) size() int64 {
	n := workBytes + len(w.ID) + openBytes*len(w.open) + permitBytes*w.permits.Len() + workerBytes*len(w.workers)
	for i := range w.Partitions {
		n += partBytes + len(w.Partitions[i].Segments) + len(w.Partitions[i].Rules)
		n += rangeBytes * (w.Parts[i].failed.Len() + w.Parts[i].taken.Len())
		n += len(w.Parts[i].Simulated)
	}
	return int64(n) + w.Stream.size()
}

// oldestFinal returns the work, of a task that has ended, that was planned first and has no token or holds; nil =
// there is none.
func (s *Works) oldestFinal() (oldest *Work) {
	for _, of := range s.byParent {
		if of.Final && !of.lasts() && (oldest == nil || of.Life < oldest.Life) {
			oldest = of
		}
	}
	return oldest
}

// TextBytes returns how much of MaxErrorBytes the texts of errors take.
func TextBytes(all []events.ItemError) (n int64) {
	for _, e := range all {
		n += int64(len(e.Item) + len(e.Code) + len(e.Message))
	}
	return n
}
