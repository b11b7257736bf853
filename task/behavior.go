package task

import (
	"context"
	"io"
	"log/slog"
	"time"

	"taskledger/events"
)

// Behavior is one kind of work as the engine sees it: parameters and results are JSON text. Plan runs in the process
// that submits, or, for a submit by name, on a node that has the behavior; Run runs on the node that makes the attempt.
// The owner of the task's shard calls neither, and may lack the code: it decides by the recorded Policy.
// behaviors.Bound implements Behavior.
type Behavior interface {
	// ID names the behavior: 1 to 48 bytes of [a-z0-9-].
	ID() string
	// Types names the parameter and result types, so that people can find nodes that disagree about them.
	Types() string
	// Policy is recorded with every task that is created from then on. Its zero fields select the defaults.
	Policy() Policy
	// Plan says which task the parameters are about and when it may start; its error refuses the submit. For a submit
	// by name it has a second to return.
	Plan(params []byte, now time.Time) (Plan, error)
	// Run makes one attempt. ctx ends at the time-out, when the task is cancelled, and when the node must no longer
	// make the attempt; Run should then return soon. A panic or runtime.Goexit is recorded as a failed attempt.
	Run(ctx context.Context, a Attempt) Outcome
}

// Failer is implemented by a behavior that decides what follows a failed attempt of which Run has returned no
// outcome: it panicked, ended its goroutine, or did not return after the time-out. Failed is asked on the node of the
// attempt; Run may not have returned yet. Only Wait and Next of the outcome count. Where decided is false, and where
// Failed panics or does not answer within 10 s, the attempt is retried by the policy.
type Failer interface {
	// Failed returns what follows the failure e of an attempt; decided says whether the outcome counts.
	Failed(a Attempt, e *events.Error) (o Outcome, decided bool)
}

// Merger is implemented by a behavior that combines the parameters of a further submit with the stored ones. Merge runs
// where Plan does. What it returns is committed on condition that the stored parameters have not changed meanwhile;
// otherwise it is called again.
type Merger interface {
	// Merge returns the parameters that take the place of the stored ones; its error refuses the submit.
	Merge(stored, requested []byte) ([]byte, error)
}

// Policy, with the types of two of its fields, is recorded with every task: see package events.
type (
	Policy   = events.Policy
	Backoff  = events.Backoff
	Existing = events.Existing
)

// The values of Policy.Existing: what a submit does if its task has ended for good.
const (
	ReturnRecorded = events.ReturnRecorded
	RunAgain       = events.RunAgain
)

// Plan names the task of a submit, and says when it may start.
type Plan struct {
	ID        events.TaskID // "" = drawn at random
	NotBefore time.Time     // zero = now
	// Delay is the time from the submit to the first attempt, by the clock of the shard's owner; 0 = none. Beside
	// NotBefore the later time counts.
	Delay time.Duration
	// Priority is 0 to 9,223,371; among the ready tasks of the shards of a node the highest starts first. 0 = the
	// policy's.
	Priority int64
	// RunNow is for a task that has ended and will run again later, by a repetition or a retry: if true, the submit
	// makes its next run due when a new task would be.
	RunNow bool
	// IDLimit bounds the bytes of the id, which a submit may have chosen; 0 = events.MaxIDBytes.
	IDLimit int64
}

// Attempt is one call of a behavior's Run, for one task.
type Attempt struct {
	Task     events.TaskID
	Behavior string
	Number   int             // 1, 2, 3 ... within the life of the task; attempts that were snoozed, lost or released count
	Failures int             // failed attempts of this run before this one; a decision to retry goes by it
	Lost     int             // lost attempts of this run before this one
	Policy   Policy          // as recorded, with every default filled in
	Token    events.Position // grows with every attempt of a task; its Ref is the fencing token for outside systems
	Params   []byte          // JSON text; nil = none
	Deadline time.Time       // zero = none
	// Log writes to the log of the node, with the task and the attempt as attributes. Where logs of tasks are kept,
	// its records of level Info and above go to the log of the attempt, too. It never waits, and may be used
	// concurrently.
	Log *slog.Logger
	// Output returns a writer that makes a line in the log of the attempt of each line of text written to it: of
	// level information for a level below slog.LevelError, else of level error. Output is never nil, and takes no
	// place in the log before something is written. One goroutine at a time may use a writer. Where logs are not kept
	// the text is discarded.
	//
	// Where held is true, as for a program whose pipe fills up, Write returns when there is room for the lines: after
	// 5 s at most, at once while the store of logs is away, and once the context of the attempt has ended. The end of the
	// attempt then waits until its lines are stored, for a second at most. Otherwise nothing waits, and lines that find
	// no room are left out: whoever reads the log sees where. After the attempt has ended the error of Write is
	// io.ErrClosedPipe.
	Output func(level slog.Level, held bool) io.Writer
	// Progress reports how far the attempt is, in units of the function's own. At most one report a second is
	// recorded, the latest. It returns at once, except that it can wait for up to a second when the network takes
	// nothing more. note is cut at 256 bytes.
	Progress func(done, total int64, note string)
	// Lend gives up the slot of the attempt until takeBack is called, which must happen once: it is for an attempt
	// that waits for work which may need a slot. engine.Future.Wait under the attempt's context lends the slot by
	// itself.
	//
	// takeBack returns at once, even if that makes more attempts go on than the node has slots; no other attempt
	// starts until fewer slots are used than there are. The attempt keeps its place within the limit of its behavior,
	// and of one behavior a node makes no more attempts at once than it has slots, those that lend theirs included. So
	// attempts that wait for tasks of other behaviors leave these room, while attempts that wait for tasks of their
	// own behavior can take all of it.
	//
	// Several goroutines may call Lend: the slot is lent until the last of them has taken it back.
	Lend func() (takeBack func())
}

// Outcome says how an attempt ended. The zero value is a success without a result. An outcome ends the run, except
// for a Snooze, a Release, and an Err that a Wait, a Next or Unread has retried. Another run follows a success with a
// Wait or a Next, and any end of a run where Policy.Every is set.
type Outcome struct {
	Result []byte        // of a success, JSON text; nil = none
	Err    *events.Error // nil: success
	// Wait is the time from the end of the attempt to a repetition or retry, rounded up to milliseconds; 0 or less =
	// none. The clock of the attempt's node does not change it. The clock of the shard's owner does: the wait is
	// shorter by what that clock steps ahead meanwhile, or by what the clock of a new owner is ahead of it, and longer
	// in the reverse cases.
	Wait time.Duration
	// Next is the time of day of a repetition or retry; zero = none. The task is due when the owner's clock shows
	// Next, but not sooner after the end of the attempt than Next was ahead of the clock of the attempt's node. With
	// both Wait and Next the later one counts.
	Next   time.Time
	Snooze time.Duration // above 0: neither success nor failure, run again after this time; the other fields are ignored
	// Unread says, beside an Err, that the parameters could not be read and nothing was done. While a node is alive
	// that runs behaviors of other types, as in a rolling release, the attempt is retried by the policy; else the
	// failure is what the other fields say.
	Unread bool
	// Release gives the attempt back, as a node does that stops: it was neither success nor failure nor loss, and
	// nothing is used up. The task is ready again, for any node, at once or after Wait. The other fields are ignored.
	Release bool
}
