package behaviors

import (
	"context"
	"math/rand/v2"
	"strings"
	"time"

	"taskledger/engine"
	"taskledger/events"
	"taskledger/schedule"
	"taskledger/store"
	"taskledger/task"
)

// None stands for P in a behavior without parameters, and for R in one without a result.
type None = struct{}

// Rules holds the choices that a behavior may make. The zero value of each field selects the documented default.
// TaskID, Delay, Priority and Merge run in the process that submits, where a panic refuses the submit; AfterSuccess and
// AfterFailure run on the node that made the attempt, where a panic fails it. Rules may be called concurrently.
type Rules[P, R any] struct {
	// Policy bounds attempts and says when failed ones are retried. It is recorded with every task. Its zero fields
	// select its defaults.
	Policy task.Policy

	// DisallowUnknownFields refuses a submit with a field that P does not have. Attempts ignore such a field, so what
	// was accepted once is run.
	DisallowUnknownFields bool
	// TaskID returns the id of the task. Submits with equal ids join in one task. nil: a random id, so that every
	// submit makes a task of its own. An invalid id refuses the submit; HashID makes a valid one of any texts.
	TaskID func(p P) events.TaskID
	// Delay is the time from the submit to the first attempt, 0 to ten years, whatever the clock of the submitter
	// shows. nil: none.
	Delay func(p P) time.Duration
	// Priority returns the priority of the task, 0 to 9,223,371; among the ready tasks of the shards of a node the
	// highest starts first. 0, or a nil rule: the policy's. Any other value refuses the submit.
	Priority func(p P) int64
	// RunNow is for submits that join a task which has ended and will run again later, by a repetition or a retry.
	// true: its next run is due when a new task would be. false: the submit waits for the next run as it is
	// scheduled. It has no effect on a task that is RUNNING (a task that waits after a snooze or a loss is RUNNING,
	// too) and on one that has ended for good.
	RunNow bool
	// Merge combines the parameters of a task with those of a further submit that joins it, for the next attempt. If
	// it changes them while an attempt runs, a further run with them follows that attempt's run, and the submit waits
	// for this further run. It is not called for a task that has ended for good, unless Policy.Existing is RunAgain:
	// then it makes the parameters of the new run. nil: the stored ones stay.
	Merge func(stored, requested P) P
	// AfterSuccess returns when the task runs again after a success. nil, or the zero time: never, unless
	// Policy.Every says when. A time in the past means at once, which is at the earliest 50 ms after the start of the
	// attempt.
	//
	// now.Add(d) is a wait of d, whatever the clock of this node shows: see task.Outcome.Wait. A time without a
	// monotonic clock reading is a time of day: see task.Outcome.Next. time.Date, AddDate, Truncate, Round, In and
	// UTC return such times. If the clock of this node or of the shard's owner is wrong when the attempt ends, the
	// task is late and never early. If only later the owner's clock is ahead, the task is early.
	AfterSuccess func(p P, r R, now time.Time) time.Time
	// AfterFailure returns when the task runs again after a failed attempt; the zero time: never, the failure is
	// final. A nil rule returns f.Backoff. Waits, times of day and past times are as for AfterSuccess; f.Backoff is a
	// wait. The rule is called for an attempt that panicked, ended its goroutine or did not return after its
	// time-out, too. It is not called for errors that Cancel made final and for parameters that cannot be decoded,
	// which are final too, nor for lost attempts, which follow Policy. What must go on after these as well is
	// repeated by Policy.Every.
	AfterFailure func(p P, f Failure, now time.Time) time.Time
	// Schedules are schedules of the behavior, by name; their Behavior is left out. Each node that runs the behavior
	// sets those whose definitions, as they stand here, the cluster has not seen: so what operators change, pause and
	// delete stays, also when nodes of older code start again, until the code changes. It remembers the last 16
	// definitions of each. A node tries again each minute, as while another is present that cannot read schedules.
	Schedules map[string]schedule.Definition
}

// Failure is a failed attempt as AfterFailure sees it.
type Failure struct {
	Err     *task.Error
	Attempt int // number of the attempt within the life of the task, from 1 on
	Lost    int // lost attempts of this run before this one
	// Backoff is the time at which Policy, or RetryAfter, would run the task again. It is zero when the attempts are
	// used up, and when the attempt failed because its result cannot be recorded.
	Backoff time.Time
}

// Behavior is one kind of work, without the function that does it. It is immutable and may be used concurrently.
type Behavior[P, R any] struct {
	id      string
	rules   Rules[P, R]
	invalid error // what is wrong with the definition

	now    func() time.Time
	random func() float64 // in [0, 1)
}

// Define declares a kind of work. id is 1 to 48 bytes of [a-z0-9-]; rules may be nil and are copied. Define never
// fails: NewNode and Submit report a wrong definition as *store.InvalidError. If P or *P has a method Validate()
// error, parameters that it rejects are refused at submit, and an attempt with them fails with the code
// events.CodeRejected.
func Define[P, R any](id string, rules *Rules[P, R]) *Behavior[P, R] {
	b := &Behavior[P, R]{id: id, now: time.Now, random: rand.Float64}
	if rules != nil {
		b.rules = *rules
	}
	policy, err := b.rules.Policy.Complete()
	if err != nil {
		b.invalid = &store.InvalidError{Field: "behavior " + id, Problem: err.Error()}
		return b
	}
	b.rules.Policy = policy
	if err := events.ValidateBehavior(id); err != nil {
		b.invalid = &store.InvalidError{Field: "behavior", Problem: strings.TrimPrefix(err.Error(), "behavior ")}
	}
	return b
}

// Schedules returns Rules.Schedules, which engine.NewNode reads.
func (b *Behavior[P, R]) Schedules() map[string]schedule.Definition { return b.rules.Schedules }

// ID returns the behavior's id.
func (b *Behavior[P, R]) ID() string { return b.id }

// Bind returns the behavior together with the function that does the work, for engine.NodeConfig.Behaviors. fn may be
// called concurrently. Its ctx ends when the attempt must stop, and Attempt returns the attempt that it belongs to.
// The error of fn decides what comes next: see Cancel, Snooze, RetryAfter and Code. With a nil fn the returned
// behavior can be submitted, but NewNode refuses it. Without the rule Merge it is a *Bound[P, R].
func (b *Behavior[P, R]) Bind(fn func(ctx context.Context, params P) (R, error)) task.Behavior {
	bound := &Bound[P, R]{Behavior: b, fn: fn}
	if b.rules.Merge != nil {
		return &merging[P, R]{bound}
	}
	return bound
}

// Client submits tasks and waits for their outcomes. *engine.Node and *engine.Client implement it. Its methods may be
// called concurrently.
type Client interface {
	// Submit returns once the request is durable. The future is never nil: after an error its Wait returns that error.
	Submit(ctx context.Context, b task.Behavior, params []byte, o task.SubmitOptions) (*engine.Future, error)
	// SubmitMany is Submit for many requests, with a result for each.
	SubmitMany(ctx context.Context, requests []task.Request, o task.ManyOptions) []engine.Result
	// Attach returns the future of a task that any process submitted.
	Attach(id events.TaskID) *engine.Future
}

// Submit asks for the work and returns when the request is durable. ctx bounds the call, never the task. The future
// is never nil: after an error its Wait returns that error. Submit returns the errors of engine.Client.Submit; among
// them are *store.InvalidError if the definition, the parameters or what a rule returned are invalid, and
// *task.LimitError if the parameters exceed events.MaxPayloadBytes of JSON text.
func (b *Behavior[P, R]) Submit(ctx context.Context, to Client, params P) (*Future[R], error) {
	return b.SubmitWith(ctx, to, params, task.SubmitOptions{})
}

// SubmitWith is Submit with options: a field of o that is not zero takes the place of the value that the rules give.
func (b *Behavior[P, R]) SubmitWith(
	ctx context.Context, to Client, params P, o task.SubmitOptions,
) (*Future[R], error) {
	raw, err := encode("parameters", params)
	if err != nil {
		return failed[R](o.ID, err), err
	}
	f, err := to.Submit(ctx, b.Bind(nil), raw, o)
	return futureOf[R](f, f), err
}

// Attach returns the future of a task that any process submitted. If the result cannot be decoded as an R, Wait
// returns an error.
func (b *Behavior[P, R]) Attach(to Client, id events.TaskID) *Future[R] {
	f := to.Attach(id)
	return futureOf[R](f, f)
}
