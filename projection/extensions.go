package projection

import (
	"cmp"
	"slices"

	"taskledger/events"
	"taskledger/projection/extension"
	"taskledger/projection/items"
	"taskledger/projection/journal"
	"taskledger/projection/schedules"
	"taskledger/projection/settings"
	"taskledger/projection/works"
)

// fronts make the extensions of a shard, in the order in which their sections are stored.
var fronts = []func(extension.Shard) extension.Extension{
	journal.Extend,
	settings.Extend,
	items.Extend,
	schedules.Extend,
	works.Extend,
}

// extensions holds the extensions of one shard.
type extensions struct {
	all      []extension.Extension
	byRecord []*extension.Extension
	byKind   map[events.Kind]*extension.Extension // of events of tasks that the fold of tasks leaves to extensions

	// The extensions that take part in what happens to tasks.
	saw, forgot, holds, ended []*extension.Extension
	crew                      extension.Crew
}

// extend makes the extensions of the shard.
func (s *Shard) extend() {
	x := &s.extensions
	x.all = make([]extension.Extension, len(fronts))
	x.byRecord = make([]*extension.Extension, len(events.Records()))
	x.byKind = map[events.Kind]*extension.Extension{}
	for i, front := range fronts {
		x.all[i] = front(extension.Shard{Clock: &s.steady, Reconsider: s.reconsider})
		of := &x.all[i]
		for _, record := range of.Records {
			x.byRecord[record] = of
		}
		for _, kind := range of.Kinds {
			x.byKind[kind] = of
		}
		if of.Saw != nil {
			x.saw = append(x.saw, of)
		}
		if of.Forgot != nil {
			x.forgot = append(x.forgot, of)
		}
		if of.Holds != nil {
			x.holds = append(x.holds, of)
		}
		if of.Ended != nil {
			x.ended = append(x.ended, of)
		}
		if of.Crew != nil {
			x.crew = of.Crew
		}
	}
}

// Crew tells which tasks were made for others.
func (s *Shard) Crew() extension.Crew { return s.extensions.crew }

// Leading returns the tasks that have a work, the newest first.
func (s *Shard) Leading() (all []*Task) {
	for id := range works.Of(s).Tasks() {
		if t := s.tasks[id]; t != nil {
			all = append(all, t)
		}
	}
	slices.SortFunc(all, func(x, y *Task) int { return cmp.Compare(y.Created, x.Created) })
	return all
}

// Tries returns how many attempts of a task were lost, and how many failed, as its policy counts them at a time: those
// of its run, unless it is of a crew.
func (s *Shard) Tries(t *Task, now events.Millis) (lost, failed int) {
	if lost, failed, of := s.extensions.crew.Tries(t.ID, now); of {
		return lost, failed
	}
	return int(t.Lost), int(t.Failures)
}

// State returns the state of the extension that has a record, for the package of its front: settings.Of, journal.Of,
// items.Of, schedules.Of and works.Of return it by its type. It is the shard's own: read only, until the next Apply. A
// record that no extension has is without a state: nil.
func (s *Shard) State(of events.Record) any {
	if x := s.extensions.byRecord[of]; x != nil {
		return x.State
	}
	return nil
}

// Next returns the sequence and the predecessor of the next event of a record of which the shard has one.
func (s *Shard) Next(of events.Record) (seq uint64, prev events.Ref) {
	return s.extensions.byRecord[of].Next(of)
}

// applyRecord folds an event that is of no task.
func (s *Shard) applyRecord(ev *events.Event) error {
	of := s.extensions.byRecord[ev.Kind().Record()]
	if err := of.Fold(ev); err != nil {
		return &TransitionError{Record: ev.Kind().Record(), Seq: ev.Seq, Kind: ev.Kind(), Problem: err.Error()}
	}
	if of.Losses != nil {
		s.tellLosses(true)
	}
	return nil
}

// tellLosses lets every extension know what the journal has lost.
func (s *Shard) tellLosses(recorded bool) {
	for i := range s.extensions.all {
		from := &s.extensions.all[i]
		if from.Losses == nil {
			continue
		}
		times, at := from.Losses()
		for j := range s.extensions.all {
			if to := &s.extensions.all[j]; to.Lost != nil {
				to.Lost(times, at, recorded)
			}
		}
	}
}

// Losses returns how often the journal has lost entries, or given some up.
func (s *Shard) Losses() (times uint64) {
	for i := range s.extensions.all {
		if x := &s.extensions.all[i]; x.Losses != nil {
			n, _ := x.Losses()
			times += n
		}
	}
	return times
}

// CutAfter returns the entries after which the store lost the rest of the journal, as that records it.
func (s *Shard) CutAfter() (entries []uint64) {
	for i := range s.extensions.all {
		if x := &s.extensions.all[i]; x.CutAfter != nil {
			entries = append(entries, x.CutAfter()...)
		}
	}
	return entries
}

// OnlySome announces that the events of some records alone will be folded.
func (s *Shard) OnlySome() {
	for i := range s.extensions.all {
		if x := &s.extensions.all[i]; x.Partial != nil {
			x.Partial()
		}
	}
}

// restoreExtensions completes the extensions after every row was read.
func (s *Shard) restoreExtensions(entry uint64, now events.Millis) error {
	s.tellLosses(false)
	for i := range s.extensions.all {
		if err := s.extensions.all[i].Restored(entry, now); err != nil {
			return err
		}
	}
	return nil
}

// extensionBytes is about how much room the extensions take in a snapshot.
func (s *Shard) extensionBytes() (sum int64) {
	for i := range s.extensions.all {
		if x := &s.extensions.all[i]; x.Bytes != nil {
			sum += x.Bytes()
		}
	}
	return sum
}

// saw shows an event of a task, which has no place yet, to the extensions that look at them.
func (s *Shard) saw(t *Task, ev *events.Event) {
	seen := t.seen()
	for _, x := range s.extensions.saw {
		x.Saw(seen, ev)
	}
}

// allowed reports an event, of a kind that an extension folds, which its state does not allow.
func (s *Shard) allowed(t *Task, ev *events.Event) error {
	x := s.extensions.byKind[ev.Kind()]
	if x == nil {
		return nil
	}
	if err := x.Allows(t.seen(), ev); err != nil {
		return &TransitionError{
			Task:    ev.Task,
			Seq:     ev.Seq,
			Kind:    ev.Kind(),
			From:    t.Phase(),
			To:      t.Phase(),
			Problem: err.Error(),
		}
	}
	return nil
}

// tellForgotten lets extensions know which tasks retention has forgotten.
func (s *Shard) tellForgotten() {
	for i, t := range s.forgotten {
		for _, x := range s.extensions.forgot {
			x.Forgot(t.seen())
		}
		s.forgotten[i] = nil
	}
	s.forgotten = s.forgotten[:0]
}

// heldBack reports whether an extension holds a finished task.
func (s *Shard) heldBack(t *Task) bool {
	for _, x := range s.extensions.holds {
		if x.Holds(t.seen()) {
			return true
		}
	}
	return false
}

// reconsider gives a task its place anew, after an extension may have changed what it holds. A task that has no place
// is about to have one.
func (s *Shard) reconsider(id events.TaskID) {
	if t := s.tasks[id]; t != nil && t.in != nil && t.Final() {
		s.weigh(t, -1)
		s.lift(t)
		s.place(t, s.Time)
		s.weigh(t, 1)
	}
}

// Ended returns the events that follow in the entry of the event which has ended an attempt of the task, or a task that
// waited; the task is as that event left it.
func (s *Shard) Ended(t *Task, ev *events.Event) (follow []events.Event) {
	for _, x := range s.extensions.ended {
		follow = append(follow, x.Ended(t.seen(), ev)...)
	}
	return follow
}

// EndBytes holds how much extensions declare that Ended adds to an entry for one attempt at most.
var EndBytes = func() (sum int) {
	for _, x := range NewShard(0).extensions.all {
		sum += x.EndBytes
	}
	return sum
}()

// EndBytes returns how much extensions declare that Ended adds beyond EndBytes to an entry for one attempt at most, as
// the shard is now.
func (s *Shard) EndBytes() (sum int) {
	for _, x := range s.extensions.ended {
		if x.EndBytesNow != nil {
			sum += x.EndBytesNow()
		}
	}
	return sum
}

// seen returns the task as extensions see it.
func (t *Task) seen() extension.Task {
	return extension.Task{
		ID:        t.ID,
		Life:      t.Created,
		Behavior:  t.Kind.Behavior,
		Running:   t.OnNode(),
		Final:     t.Final(),
		Suspended: t.Suspended,
		Bytes:     t.bytes(),
		Run:       t.RunOf(),
	}
}
