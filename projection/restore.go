package projection

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"taskledger/events"
	"taskledger/internal/wire"
	"taskledger/projection/extension"
	"taskledger/projection/name"
	"taskledger/task"
)

// ErrSnapshot is wrapped when the parts of a snapshot are not what Snapshot wrote, or not all of it, or not what
// this program reads: then events.ErrVersion is wrapped, too.
var ErrSnapshot = errors.New("damaged snapshot")

// maxStoredPart bounds a part: a task with the largest texts and payloads, or a sender with the largest answers, fits.
const maxStoredPart = 1 << 20

// Restorer makes a shard of the parts of a snapshot.
type Restorer struct {
	shard *Shard
	head  snapshotHead
	parts uint64
	kinds []*Kind
	nodes []name.Name
	tasks []*Task
	read  []uint64            // rows so far, by section
	rest  []extension.Section // those of the shard beside its tasks
	err   error
}

// NewRestorer returns a restorer of a snapshot of the shard.
func NewRestorer(shard int) *Restorer {
	s := NewShard(shard)
	return &Restorer{
		shard: s,
		read:  make([]uint64, sectionCount),
		rest:  s.sections(),
	}
}

// Add takes the next part, of which it keeps nothing. Its first error, which wraps ErrSnapshot, is that of all
// later calls.
func (r *Restorer) Add(part []byte) error {
	if r.err == nil {
		r.fail(r.add(part))
	}
	r.parts++
	return r.err
}

func (r *Restorer) fail(err error) {
	if errors.Is(err, wire.ErrTail) { // behind the right sum
		err = fmt.Errorf("%w: %w", events.ErrVersion, err)
	}
	if err != nil {
		r.err = fmt.Errorf("%w: part %d of shard %d: %w", ErrSnapshot, r.parts, r.shard.id, err)
	}
}

func (r *Restorer) add(part []byte) error {
	if len(part) > maxStoredPart {
		return fmt.Errorf("%d bytes exceed the limit of %d", len(part), maxStoredPart)
	}
	if n := len(part) - sumBytes; n < 0 || string(appendSum(part[:n:n])[n:]) != string(part[n:]) {
		return errors.New("the sum is not that of the content")
	}
	if err := wire.Scan(part); err != nil {
		return err
	}
	in := wire.NewReader(part)
	if err := r.addHead(in); err != nil {
		return err
	}
	if err := inOrder(in, func(section int) { r.addRows(in, section) }); err != nil {
		return err
	}
	in.Uint()
	return in.Close()
}

func (r *Restorer) addHead(in *wire.Reader) error {
	values, version := in.Array(), in.Uint()
	switch {
	case in.Err() != nil:
		return in.Err()
	case version != SnapshotVersion:
		return fmt.Errorf("%w: snapshot version %d, this program reads %d", events.ErrVersion, version, SnapshotVersion)
	case values != 9:
		return fmt.Errorf("array of %d values", values)
	}
	shard := in.Uint()
	head := snapshotHead{entry: in.Uint(), counts: make([]uint64, sectionCount)}
	hash := in.View()
	head.time = events.Millis(in.Int())
	count := func(section int) {
		if head.counts[section] = in.Uint(); head.counts[section] == 0 || section < ofTasks {
			in.Fail("%d rows of section %q counted", head.counts[section], sectionName(section))
		}
	}
	if err := inOrder(in, count); err != nil {
		return err
	}
	part := in.Uint()
	switch {
	case in.Err() != nil:
		return in.Err()
	case shard != uint64(r.shard.id) || part != r.parts:
		return fmt.Errorf("it is part %d of shard %d", part, shard)
	case copy(head.hash[:], hash) != len(hash) || len(hash) != len(head.hash):
		return fmt.Errorf("hash of %d bytes", len(hash))
	case part == 0:
		r.head = head
	case !head.is(r.head):
		return fmt.Errorf("it is of another snapshot, of entry %d, not %d", head.entry, r.head.entry)
	}
	return nil
}

func (h snapshotHead) is(other snapshotHead) bool {
	return h.entry == other.entry && h.hash == other.hash && h.time == other.time && slices.Equal(h.counts, other.counts)
}

// inOrder reads an array of pairs, of which the first is the name of a section. It calls each before what follows
// the name.
func inOrder(in *wire.Reader, each func(section int)) error {
	before := -1
	for range in.Array() {
		in.ArrayOf(2)
		name := in.Text()
		section := sectionOf(name)
		switch {
		case in.Err() != nil:
			return in.Err()
		case section < 0:
			return fmt.Errorf("%w: section %q of a snapshot, which this program does not know", events.ErrVersion, name)
		case section <= before:
			return fmt.Errorf("section %q in the wrong place", name)
		}
		before = section
		each(section)
	}
	return in.Err()
}

// addRows reads the rows of a section.
func (r *Restorer) addRows(in *wire.Reader, section int) {
	n := in.Array()
	if n == 0 {
		in.Fail("section %q without a row", sectionName(section))
	}
	r.read[section] += uint64(n)
	if section >= ofTasks && r.read[section] > r.head.counts[section] {
		in.Fail("row %d of %d in section %q", r.read[section], r.head.counts[section], sectionName(section))
	}
	for i := 0; i < n && in.Err() == nil; i++ {
		switch section {
		case ofNodes:
			r.addNode(in)
		case ofKinds:
			r.addKind(in)
		case ofTasks:
			r.addTask(in)
		default:
			r.rest[section-firstListed].Read(in)
		}
	}
}

func (r *Restorer) addNode(in *wire.Reader) {
	text := in.Text()
	if text == "" {
		in.Fail("a node without a name")
		return
	}
	r.nodes = append(r.nodes, r.shard.names.Of(text))
}

func (r *Restorer) addKind(in *wire.Reader) {
	k := decodeKind(in)
	if in.Err() != nil {
		return
	}
	if err := events.ValidateBehavior(k.behavior); err != nil {
		in.Fail("%v", err)
		return
	}
	if _, err := k.policy.Complete(); err != nil {
		in.Fail("%v", err)
		return
	}
	r.kinds = append(r.kinds, r.shard.kind(k))
}

func (r *Restorer) addTask(in *wire.Reader) {
	t := decodeTask(in, r.kinds, r.nodes)
	if in.Err() != nil {
		return
	}
	if problem := t.problem(r.head.entry); problem != "" {
		in.Fail("task %q: %s", t.ID, problem)
		return
	}
	r.tasks = append(r.tasks, t)
	r.shard.join(t.Kind)
}

// Done returns the shard, which from here on is as the one that the snapshot is of; which of the waiting tasks are
// ready is for MakeDue to say. It wraps ErrSnapshot when a part is missing or what they say does not fit. The
// restorer must not be used again.
func (r *Restorer) Done() (*Shard, error) {
	if r.err == nil {
		r.fail(r.complete())
	}
	if r.err != nil {
		return nil, r.err
	}
	return r.shard, nil
}

func (r *Restorer) complete() error {
	s := r.shard
	if r.parts == 0 {
		return errors.New("missing")
	}
	for section, want := range r.head.counts {
		if section >= ofTasks && r.read[section] != want {
			return fmt.Errorf("missing, after %d rows of %d in section %q", r.read[section], want, sectionName(section))
		}
	}
	for _, k := range r.kinds {
		if k.tasks == 0 {
			return fmt.Errorf("nothing is of kind %s", k.Behavior)
		}
	}
	if err := s.restoreExtensions(r.head.entry, r.head.time); err != nil {
		return err
	}
	s.Number, s.Hash, s.Time = r.head.entry, r.head.hash, r.head.time
	if !s.steady.Restored(s.Time) {
		return errors.New("a gap between entries behind the last one")
	}
	s.tasks = make(map[events.TaskID]*Task, len(r.tasks))
	var last Task
	for i, t := range oldestFirst(r.tasks) {
		if t.Created <= last.Created || t.CreatedAt < last.CreatedAt {
			return fmt.Errorf("tasks %q and %q were created by one event, or in another order than their times", last.ID, t.ID)
		}
		last = Task{ID: t.ID, Created: t.Created, CreatedAt: t.CreatedAt}
		s.tasks[t.ID] = t
		if len(s.tasks) != i+1 {
			return fmt.Errorf("task %q is there twice", t.ID)
		}
		s.created.add(t)
		if t.Deadline() != 0 {
			s.deadlines.keep(t)
		}
		s.place(t, s.Time)
		s.weigh(t, 1)
	}
	return nil
}

// oldestFirst orders tasks by their creation. A snapshot writes them newest first, but for those that were about to
// change: these come before newer ones.
func oldestFirst(tasks []*Task) []*Task {
	inTurn, early := tasks[:0], []*Task(nil)
	for _, t := range tasks {
		for last := len(inTurn) - 1; last >= 0 && inTurn[last].Created < t.Created; last-- {
			early = append(early, inTurn[last])
			inTurn = inTurn[:last]
		}
		inTurn = append(inTurn, t)
	}
	slices.SortFunc(early, func(a, b *Task) int { return cmp.Compare(b.Created, a.Created) })
	ordered := make([]*Task, 0, len(tasks))
	for len(inTurn)+len(early) > 0 {
		from := &inTurn
		if n := len(early); len(inTurn) == 0 || n > 0 && early[n-1].Created < inTurn[len(inTurn)-1].Created {
			from = &early
		}
		last := len(*from) - 1
		ordered = append(ordered, (*from)[last])
		*from = (*from)[:last]
	}
	return ordered
}

// problem says what keeps the task from being the fold of events up to the entry, "" if nothing does.
func (t *Task) problem(entry uint64) string {
	if err := t.ID.Validate(); err != nil {
		return err.Error()
	}
	if problem := t.waited().problem(t); problem != "" {
		return problem
	}
	switch running := t.Status == task.Running; {
	case t.Status == 0:
		return "no status"
	case t.Seq == 0 || t.Created == 0 || t.Last < t.Created || t.Last.Entry() > entry:
		return "it begins or ends outside of the journal"
	case max(t.ParamsAt, t.Started, t.Outcome) > t.Last || t.ParamsAt < t.Created:
		return "it names an event after its last or before its first one"
	case !running && t.Cancelled:
		return "cancelled without being RUNNING"
	case t.Rerun && t.RunEnded:
		return "the further run of a run that is over"
	case (t.LastNode == name.Name{}) != (t.Attempt == 0):
		return "an attempt on no node, or a node without an attempt"
	case running && (t.Attempt == 0 || t.Started == 0):
		return "RUNNING without an attempt or a start"
	case t.Status == task.Created && t.Due == 0:
		return "CREATED without a time"
	case (t.Result != nil || t.ResultElided) && t.Status != task.Success:
		return "a result without SUCCESS"
	case (t.Error != nil) != (t.Status == task.Failure), t.ErrorElided && t.Error == nil:
		return "an error without FAILURE, or none with it"
	case (t.Status == task.Success || t.Status == task.Failure) && t.Outcome == 0:
		return "an end without an outcome"
	case t.Final() && t.Deadline() != 0:
		return "a finished task with a deadline"
	case t.Final() && (!t.RunEnded || t.Params != nil || len(t.Result) > MaxKeptResult || t.Error != nil && errorBytes(t.Error) > MaxKeptError):
		return "a finished task that holds on to its run"
	}
	return ""
}
