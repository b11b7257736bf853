package task

import (
	"context"
	"log/slog"
	"time"

	"taskledger/events"
)

// Behavior is one kind of work as the engine sees it: parameters and results are JSON text. behaviors.Behavior implements
// it. Only Plan and Run are user code, and neither runs inside decide: Plan runs in the process that submits (or, for a
// raw submit, on a node that has the behavior), Run on the node of the attempt. What an owner without the code must know
// is the Policy, recorded in Created.
type Behavior interface {
	ID() string
	// Types names the parameter and result types, for humans to find members that disagree.
	Types() string
	Policy() Policy
	// Plan decides where and when a task with these parameters belongs; its error refuses the submit. For a raw submit it has a
	// second to return.
	Plan(params []byte, now time.Time) (Plan, error)
	// Run makes one attempt. ctx ends at the time-out, when the task is cancelled, and when the node must no longer
	// run it; Run should then return soon. A panic or runtime.Goexit is recorded as a failed attempt.
	Run(ctx context.Context, a Attempt) Outcome
}

// Merger is implemented by a behavior that combines the parameters of a second submit with the stored ones. The
// submitter calls it, and the outcome is committed on condition that the stored ones did not change meanwhile.
type Merger interface {
	Merge(stored, requested []byte) ([]byte, error)
}

// Policy, Backoff and Existing are recorded with every task; see package events.
type (
	Policy   = events.Policy
	Backoff  = events.Backoff
	Existing = events.Existing
)

// What a submit does that meets a final record of the same id.
const (
	ReturnRecorded = events.ReturnRecorded
	RunAgain       = events.RunAgain
)

// Plan is where and when a submitted task belongs.
type Plan struct {
	ID        events.TaskID // "" = drawn at random
	NotBefore time.Time     // zero = now
	Priority  int64         // higher first among the tasks of a shard; 0 = the policy's
	RunNow    bool          // a task that has ended and is to run again, later, is due when a new one would be
}

// Attempt is one run as its handler sees it.
type Attempt struct {
	Task     events.TaskID
	Behavior string
	Number   int             // 1, 2, 3 ... within the life of the task
	Failures int             // failed attempts of this run before this one
	Lost     int             // lost attempts of this run before this one
	Policy   Policy          // as recorded, complete
	Token    events.Position // grows with every attempt of a task: the fencing token for outside systems is its Ref
	Params   []byte
	Deadline time.Time // zero = none
	Log      *slog.Logger
	// Progress tells how far the attempt is; recorded at most once a second, the last one wins. It waits for
	// nothing but, a second at most, a network that takes no more.
	Progress func(done, total int64, note string)
	// Lend gives up the slot of the attempt, not its place within the behavior's limit, until takeBack is called, once: for a
	// wait that may be for work in need of a slot. engine.Future.Wait under the attempt's context does so by itself. The attempt goes
	// on at once, above the node's slots if need be; nothing starts until fewer are used than there are. Of one behavior as
	// many attempts as the node has slots are made at once all the same, those that lend theirs included: so tasks that wait
	// for tasks of other behaviors leave these room, while those that wait for tasks of their own behavior can take it all.
	// It may be called by several goroutines: the slot is lent until the last has taken it back.
	Lend func() (takeBack func())
}

// Outcome is what an attempt came to. The zero value is a success without result. It is final unless it has a Wait, a Next or a
// Snooze.
type Outcome struct {
	Result []byte        // JSON text; of a success
	Err    *events.Error // nil: success
	// Wait is the time from the end of the attempt to a repetition or retry, in milliseconds rounded up. The clock of the
	// attempt's node does not change it. That of the shard's owner does: the wait is shorter by what it steps ahead meanwhile, or
	// by what a new owner's is ahead of it, and longer in the reverse cases. 0 or less = none.
	Wait time.Duration
	// Next is a time of day for a repetition or retry. It is due when the owner's clock shows Next, and no sooner after the end of
	// the attempt than Next was ahead of the clock of the attempt's node, which is a wait like Wait. Beside Wait the later one
	// counts. Zero = none.
	Next   time.Time
	Snooze time.Duration // above 0: neither success nor failure, run again after it; the other fields are ignored
}
