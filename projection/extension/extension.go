// Package extension describes what a front keeps in the state of a shard beside the tasks: its records, their sections
// of a snapshot, and the part it takes in what happens to tasks. The package is pure.
package extension

import (
	"taskledger/events"
	"taskledger/internal/wire"
	"taskledger/projection/steady"
)

// Extension is the state of a front in one shard. What its functions do follows from events alone: they read no
// wall clock and start nothing. Whoever has the shard calls them, one at a time. Records, State, Fold and Restored
// are needed; any other function may be nil, for a part that the front does not have.
type Extension struct {
	// Records lists the records whose events Fold takes. No other extension takes them. One that has Kinds, which
	// are kinds of tasks, has OfTask, and no Fold.
	Records []events.Record
	// Kinds lists the kinds of events of tasks that the extension folds: Allows checks them, Saw takes them.
	Kinds []events.Kind
	// State is the state itself. The package of the front returns it by the type that it has, as settings.Of does.
	State any
	// Fold applies the next event of one of the records. An error says why the state does not allow it, and leaves
	// the state as it was.
	Fold func(ev *events.Event) error
	// Next returns the sequence and the predecessor of the next event of a record of which a shard has one.
	// Whoever emits an event of another record names both.
	Next func(of events.Record) (seq uint64, prev events.Ref)
	// Sections are the rows of the state in a snapshot, in the order in which they are stored.
	Sections []Section
	// Restored completes the state once every row was read. The snapshot was taken at entry and now.
	Restored func(entry uint64, now events.Millis) error
	// Bytes returns about how much room the state takes in a snapshot. Retention cannot make it smaller.
	Bytes func() int64

	// Losses returns how often the journal has lost events, and when last. The front that records losses has it.
	Losses func() (times uint64, at events.Millis)
	// CutAfter returns the entries after which the rest of the journal was lost, as far as that is kept. The front
	// that records losses has it.
	CutAfter func() []uint64
	// Lost learns of the losses so far. recorded tells that the latest was recorded just now, and not read from a
	// snapshot.
	Lost func(times uint64, at events.Millis, recorded bool)
	// Partial announces that events of some records alone will be folded, as an export of one of them holds.
	Partial func()

	// Allows returns an error for an event of one of Kinds that the state does not allow. The task is as it was before
	// the event, and the state machine of tasks allows it.
	Allows func(t Task, ev *events.Event) error
	// Saw learns of each event of a task, once the task is as the event left it, and before it has its place among the
	// others.
	Saw func(t Task, ev *events.Event)
	// Forgot learns of each finished task that retention has forgotten, after an entry.
	Forgot func(t Task)
	// Holds reports whether a finished task must not be forgotten. It is asked whenever the task changes, after Saw,
	// and after Shard.Reconsider of the task. The extension bounds how many it holds, and what they take: they count
	// neither as unfinished nor as finished ones against what a shard may have.
	Holds func(t Task) bool
	// Ended decides which events follow when an attempt of a task ends, by its own report or not, or when a waiting
	// task fails for good. They stand in the entry of that end, take EndBytes at most, and name their Seq and Prev
	// unless they belong to tasks. Ended changes nothing: Fold takes the events once they are recorded, and no replay
	// calls Ended. While a node is present that cannot read them, no events follow.
	Ended func(t Task, ev *events.Event) []events.Event
	// EndBytes declares how much Ended adds to an entry for one attempt at most, as events.Builder counts: batches
	// are cut by it, and an entry that exceeds it may not fit into the store.
	EndBytes int
	// EndBytesNow declares what Ended adds beyond EndBytes as the state is now. Senders of batches do not know it: the
	// owner alone reckons with it.
	EndBytesNow func() int
	// Crew tells which tasks the extension has made for others; nil = none. One extension has it.
	Crew Crew
}

// Crew tells of tasks that work together: those that a front has made for another one, and that other one. Most tasks
// have no crew.
type Crew interface {
	// Tries returns how many attempts of a task were lost, and how many failed, as its policy counts them at a time.
	// of = false where the task has no crew, so that the attempts of its run count.
	Tries(id events.TaskID, now events.Millis) (lost, failed int, of bool)
	// MadeFor returns the task for which another one was made; "" = for none. along tells that it goes along with that
	// when that is suspended, and stays as long.
	MadeFor(id events.TaskID) (lead events.TaskID, along bool)
	// Leads reports whether tasks may have been made for a task: its end is theirs.
	Leads(id events.TaskID) bool
	// Led returns the tasks that were made for a task and have not ended.
	Led(id events.TaskID) []events.TaskID
	// Params returns parameters for a further run of a task, where the state tells them: the journal may not keep those
	// with which it was made. nil = it does not.
	Params(id events.TaskID) events.Payload
}

// Shard has the parts of a shard that its extensions may use.
type Shard struct {
	// Clock counts the time between entries.
	Clock *steady.Clock
	// Reconsider has Holds asked again for a task, whose answer may have changed.
	Reconsider func(id events.TaskID)
}

// Holder holds the states of extensions, as a shard does.
type Holder interface {
	// State returns the state of the extension that has a record.
	State(of events.Record) any
}

// Task is a task as extensions see it.
type Task struct {
	ID        events.TaskID
	Life      events.Ref // the event that created it
	Behavior  string
	Running   bool
	Final     bool
	Suspended bool
	Bytes     int64            // about what it takes in a snapshot
	Run       events.RunOrigin // what made it, if it is a run of a schedule
}

// Section is a kind of rows of a state, as snapshots and digests have them. Its name is never used again for another.
type Section struct {
	Name string
	// List returns how many rows the state has, and what writes the i-th of them as it is now, whatever changes later.
	List func() (rows int, write func(i int, w *wire.Writer))
	// Read reads one row into the state.
	Read func(r *wire.Reader)
}
