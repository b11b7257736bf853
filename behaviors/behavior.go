package behaviors

import (
	"context"
	"math/rand/v2"
	"time"

	"taskledger/engine"
	"taskledger/events"
)

// None is the type of no parameters or no result.
type None = struct{}

// Rules are what a behavior may choose. Every zero value is the documented default. They run outside the commit: TaskID,
// Delay, Priority and Merge where the task is submitted, AfterSuccess and AfterFailure where the attempt ran. They may be called
// concurrently. A panic refuses the submit, or fails the attempt.
type Rules[P, R any] struct {
	// Policy is recorded with every task. Its zero fields select its defaults.
	Policy engine.Policy

	// TaskID names the task: submits of one id meet. nil: random, a one-off task. An invalid id refuses the submit; HashID makes
	// a valid one of any texts.
	TaskID func(p P) events.TaskID
	// Delay is the time from the submit to the first attempt, 0 to ten years. nil: none.
	Delay func(p P) time.Duration
	// Priority overrides the policy's, 0 to 9,223,371, higher first among the ready tasks of a shard; 0 or nil: the policy's. Any other refuses the submit.
	Priority func(p P) int64
	// RunNow lets a submit that meets a task which has ended and is to run again later, by a repetition or a retry, make it due when
	// a new task would be. false: the submit waits for the next run as it is scheduled.
	RunNow bool
	// Merge combines the parameters of a task that waits with those of a second submit. nil: the stored ones stay.
	Merge func(stored, requested P) P
	// AfterSuccess returns when the task runs again. nil, or the zero time: never. A past time means at
	// once, which is 50 ms after the start of the attempt at the earliest. now.Add(d) is a wait of d, whatever time the clock
	// of this node shows: see engine.Outcome.Wait. A time without a monotonic reading, which time.Date, AddDate, Truncate, Round, In
	// and UTC return, is a time of day: see engine.Outcome.Next, by which one clock that is wrong when the attempt ends, the owner's or
	// this node's, makes the task late, not early. An owner's that is ahead only later makes it early.
	AfterSuccess func(p P, r R, now time.Time) time.Time
	// AfterFailure returns when the task runs again after a failed attempt; the zero time: never, the failure is final.
	// nil: f.Backoff. It is not asked about errors made final by Cancel, undecodable parameters, panics and losses: the
	// first two are final, the others follow Policy. Waits, times of day and past times are as for AfterSuccess; f.Backoff is a wait.
	AfterFailure func(p P, f Failure, now time.Time) time.Time
}

// Failure is a failed attempt as AfterFailure sees it.
type Failure struct {
	Err     *engine.TaskError
	Attempt int       // number of the attempt within the life of the task, 1 is the first
	Lost    int       // lost attempts of this run before this one
	Backoff time.Time // when Policy, or RetryAfter, would run it again; zero: the attempts are used up, or the result cannot be recorded
}

// maxDelay bounds what rules and handlers may ask for: every point in time stays far from overflow.
const maxDelay = 10 * 365 * 24 * time.Hour

// Behavior is one kind of work, without the function that does it. It is immutable and may be used concurrently.
type Behavior[P, R any] struct {
	id      string
	rules   Rules[P, R]
	invalid error // what is wrong with the definition

	now    func() time.Time
	random func() float64 // in [0, 1)
}

// Define declares a kind of work; id is 1 to 48 bytes of [a-z0-9-], rules may be nil and are copied. It never fails:
// NewNode and Submit report a bad definition as *engine.InvalidError. When P or *P has a method Validate() error,
// parameters that it rejects are refused at submit, and an attempt with them fails as "rejected".
func Define[P, R any](id string, rules *Rules[P, R]) *Behavior[P, R] {
	b := &Behavior[P, R]{id: id, now: time.Now, random: rand.Float64}
	if rules != nil {
		b.rules = *rules
	}
	policy, err := b.rules.Policy.Complete()
	if err == nil {
		b.rules.Policy = policy
		err = events.ValidateBehavior(id)
	}
	if err != nil {
		b.invalid = &engine.InvalidError{Field: "behavior " + id, Problem: err.Error()}
	}
	return b
}

// ID returns the behavior's id.
func (b *Behavior[P, R]) ID() string { return b.id }

// Bind returns what NodeConfig.Behaviors wants. fn may be called concurrently; its ctx answers Attempt and ends when the
// attempt must stop. fn decides with its error what comes next: see Cancel, Snooze, RetryAfter and Code. With a nil fn
// the returned behavior can be submitted, but NewNode refuses it.
func (b *Behavior[P, R]) Bind(fn func(ctx context.Context, params P) (R, error)) engine.Behavior {
	bound := &Bound[P, R]{Behavior: b, fn: fn}
	if b.rules.Merge != nil {
		return &merging[P, R]{bound}
	}
	return bound
}

// Client is an *engine.Node or an *engine.Client.
type Client interface {
	// Submit returns once the request is durable. The future is never nil: after an error its Wait returns that error.
	Submit(ctx context.Context, b engine.Behavior, params []byte, o engine.SubmitOptions) (*engine.Future, error)
	// Attach returns the future of a task submitted by anybody.
	Attach(id events.TaskID) *engine.Future
}

// Submit asks for the work. When the error is nil the request is durable. ctx bounds the call, never the task. The future
// is never nil: after an error its Wait returns that error. Besides the client's errors there are
// *engine.InvalidError when the definition, the parameters or the answer of a rule are invalid, and *engine.LimitError
// when the parameters exceed events.MaxPayloadBytes of JSON text.
func (b *Behavior[P, R]) Submit(ctx context.Context, to Client, params P) (*Future[R], error) {
	return b.SubmitWith(ctx, to, params, engine.SubmitOptions{})
}

// SubmitWith is Submit with options.
func (b *Behavior[P, R]) SubmitWith(ctx context.Context, to Client, params P, o engine.SubmitOptions) (*Future[R], error) {
	raw, err := encode("parameters", params)
	if err != nil {
		return failed[R](o.ID, err), err
	}
	f, err := to.Submit(ctx, b.Bind(nil), raw, o)
	return futureOf[R](f, f), err
}

// Attach returns the future of a task that anybody submitted. A result that is no R makes Wait return an error.
func (b *Behavior[P, R]) Attach(to Client, id events.TaskID) *Future[R] {
	f := to.Attach(id)
	return futureOf[R](f, f)
}
