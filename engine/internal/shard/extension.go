package shard

import (
	"context"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/explanation"
	"taskledger/engine/internal/tally"
	"taskledger/events"
	"taskledger/meter"
	"taskledger/projection"
)

// Extension is what a front does at the owner of a shard, beside the records that a projection/extension.Extension
// keeps. One belongs to one owner, from the take-over of the shard until its end. Its functions are called by the
// owner's goroutine alone and must not block. A function that is nil stands for a part that the front does not
// have.
type Extension struct {
	// Served learns that the owner begins to serve the shard; no goroutine of the owner runs yet.
	Served func()
	// NextDue returns when MakeDue has something to do, by the time of the shard; 0 = never. Both are there, or
	// neither.
	NextDue func() events.Millis
	// MakeDue makes due what is due by now, before commands are decided and questions are answered. It reports whether
	// anything was: the time of the shard does not run back behind now then.
	MakeDue func(now events.Millis) (moved bool)
	// Prepare returns work that takes too long for a turn, nil for none. The work runs in a goroutine of the session,
	// one of an extension at a time, which may outlive the owner: it must not use the state, and must end soon after
	// ctx. The function that the work returns is called in a later turn, before commands are decided. Prepare is asked
	// again at once: where its work has failed, it has to wait by itself.
	Prepare func(now events.Millis) func(ctx context.Context) (prepared func())
	// Decide records events that nobody asked for, of kinds that d.MayRecord allows: another kind ends the session.
	// It keeps to the budget by itself, and stops once d.EntryFull. It is not called for an entry that is full.
	// What is left waits for the next turn, which NextDue can bring.
	Decide func(d *command.Decider, b command.Budget)
	// Follow records what follows an event of a task in its entry, as long as that has room, once the task is as the
	// event left it. It learns of the events that it records, too.
	Follow func(d *command.Decider, ev *events.Event)
	// Note learns of each event of the entry in the making, which may not be committed.
	Note func(ev *events.Event)
	// Count gathers what an event of the entry in the making counts for the meter; what is not committed is not counted.
	Count func(ev *events.Event, to *tally.Tally)
	// Complete returns the answers to the commands of a batch as they leave, once all that they rest on is committed:
	// an entry does not hold again what the state has. It is called anew for each copy of a batch that comes.
	Complete func(commands []command.Command, answers []command.Answer) []command.Answer
	// Perform performs effects, by the committed state. It is called at the end of each turn that has not failed, also
	// of one that had nothing to commit.
	Perform func()
	// Beside returns by node how many attempts run there from which a task is to be kept apart: of the slots that there
	// are it gets one where fewest run. nil = the task may start anywhere.
	Beside func(t *projection.Task) (byNode map[string]int)
	// Answer answers a question from the committed state; false = it is not one of the front's.
	Answer func(c command.Command, now events.Millis, b command.Budget) (command.Found, bool)
	// Explain explains why a task waits for the front; false = it does not.
	Explain func(t *projection.Task) (explanation.Explanation, bool)
	// Tell says what the front knows of a task at a time, besides why it waits, whether it runs, waits, is suspended or
	// has ended; "" = nothing.
	Tell func(t *projection.Task, now events.Millis) string
	// ExplainRecord explains an id that no task has; false = it names nothing of the front.
	ExplainRecord func(id events.TaskID) (explanation.Explanation, bool)
	// Gauges sets the gauges of the front after each turn. meter.Vitals.AddFront says how the shards of a node count
	// together.
	Gauges func(set func(g meter.Gauge, value int64))
}

// NewExtension makes the extension of an owner that takes a shard over, with the state as the journal has it.
type NewExtension func(state *projection.Shard) Extension
