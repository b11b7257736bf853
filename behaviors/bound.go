package behaviors

import (
	"context"
	"fmt"
	"hash/fnv"
	"reflect"
	"strings"
	"time"

	"taskledger/events"
	"taskledger/store"
	"taskledger/task"
)

// Bound is a Behavior together with the function that does the work. Nodes take it as a task.Behavior, and it can be
// submitted with types like the Behavior itself.
type Bound[P, R any] struct {
	*Behavior[P, R]
	fn func(ctx context.Context, params P) (R, error)
}

// merging is a Bound that is a task.Merger: one without a Merge rule must not be, or every second submit would merge.
type merging[P, R any] struct{ *Bound[P, R] }

// Types returns the names of P and R with their packages, and a digest of their fields, by which nodes notice that
// they disagree.
func (b *Bound[P, R]) Types() string {
	p, r := reflect.TypeFor[P](), reflect.TypeFor[R]()
	var parts strings.Builder
	describe(&parts, p, map[reflect.Type]bool{})
	describe(&parts, r, map[reflect.Type]bool{})
	digest := fnv.New64a()
	_, _ = digest.Write([]byte(parts.String())) // never fails
	return fmt.Sprintf("%s -> %s (%016x)", p, r, digest.Sum64())
}

// describe writes what a type consists of, each named type once.
func describe(to *strings.Builder, t reflect.Type, told map[reflect.Type]bool) {
	fmt.Fprintf(to, "%s %s;", t, t.Kind())
	if told[t] {
		return
	}
	told[t] = true
	switch t.Kind() {
	case reflect.Map:
		describe(to, t.Key(), told)
		describe(to, t.Elem(), told)
	case reflect.Pointer, reflect.Slice, reflect.Array:
		describe(to, t.Elem(), told)
	case reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			fmt.Fprintf(to, "%s %q:", f.Name, f.Tag)
			describe(to, f.Type, told)
		}
	}
}

// Policy returns the policy with its defaults filled in.
func (b *Bound[P, R]) Policy() task.Policy { return b.rules.Policy }

// Validate returns an error if a node cannot run the behavior: its definition is wrong, or no function is bound to it.
func (b *Bound[P, R]) Validate() error {
	if b.invalid == nil && b.fn == nil {
		return b.unbound()
	}
	return b.invalid
}

func (b *Bound[P, R]) unbound() error {
	return &store.InvalidError{Field: "behavior " + b.id, Problem: "no function is bound to it"}
}

// Plan decodes the parameters and calls the rules TaskID, Delay and Priority. The engine calls it for each submit.
func (b *Bound[P, R]) Plan(params []byte, _ time.Time) (task.Plan, error) {
	if b.invalid != nil {
		return task.Plan{}, b.invalid
	}
	return safely("planning behavior ", b.id, func() (task.Plan, error) {
		p, err := decode[P]("parameters", params)
		if err == nil {
			err = notNull[P](params)
		}
		if err == nil && b.rules.DisallowUnknownFields { // a misspelt field would be found missing otherwise
			err = onlyKnown[P](params)
		}
		if err == nil {
			err = validate(p)
		}
		if err != nil {
			return task.Plan{}, err
		}
		return b.plan(p)
	})
}

func (b *Bound[P, R]) plan(p P) (plan task.Plan, err error) {
	if rule := b.rules.TaskID; rule != nil {
		plan.ID = rule(p)
		if err := plan.ID.Validate(); err != nil {
			return task.Plan{}, &store.InvalidError{Field: "id", Problem: err.Error()}
		}
	}
	if rule := b.rules.Delay; rule != nil {
		plan.Delay = rule(p)
		if err := checkDelay("delay", plan.Delay); err != nil {
			return task.Plan{}, err
		}
	}
	if rule := b.rules.Priority; rule != nil {
		plan.Priority = rule(p)
	}
	plan.RunNow = b.rules.RunNow
	return plan, nil
}

// Merge implements task.Merger by the rule Merge.
func (b *merging[P, R]) Merge(stored, requested []byte) ([]byte, error) {
	return safely("merging behavior ", b.id, func() ([]byte, error) {
		s, err := decodeParams[P](stored)
		if err != nil {
			return nil, fmt.Errorf("stored parameters: %w", err)
		}
		r, err := decodeParams[P](requested)
		if err != nil {
			return nil, err
		}
		return encode("merged parameters", b.rules.Merge(s, r))
	})
}

// Run makes one attempt: it calls the bound function and turns what that returns into an outcome. The engine calls it.
func (b *Bound[P, R]) Run(ctx context.Context, a task.Attempt) task.Outcome {
	p, err := decodeParams[P](a.Params)
	if err == nil && b.fn == nil {
		err = b.unbound()
	}
	if err != nil {
		return task.Outcome{Err: rejection(err), Unread: true}
	}
	r, err := b.fn(withAttempt(ctx, a), p)
	if err != nil {
		return b.failed(ctx, p, a, err)
	}
	return b.succeeded(p, a, r)
}

// Failed implements task.Failer: the rule AfterFailure decides, where there is one.
func (b *Bound[P, R]) Failed(a task.Attempt, e *events.Error) (out task.Outcome, decided bool) {
	if b.rules.AfterFailure == nil {
		return out, false
	}
	p, err := decodeParams[P](a.Params)
	if err != nil {
		return out, false
	}
	return b.afterFailure(p, a, e, b.backoff(a, verdict{}), b.now()), true
}

func (b *Bound[P, R]) succeeded(p P, a task.Attempt, r R) task.Outcome {
	raw, err := encode("result", r)
	if err != nil {
		// The same result would come again, so Policy does not; the rule may, to keep a repetition going.
		return b.afterFailure(p, a, rejection(err), 0, b.now())
	}
	if b.rules.AfterSuccess == nil || events.ScheduledPrefix(a.Task) != "" { // runs of a schedule do not repeat
		return task.Outcome{Result: raw}
	}
	now := b.now()
	out, err := followed(task.Outcome{Result: raw}, "after success", b.rules.AfterSuccess(p, r, now), now)
	if err != nil {
		return task.Outcome{Err: rejection(err)}
	}
	return out
}

func (b *Bound[P, R]) failed(ctx context.Context, p P, a task.Attempt, err error) task.Outcome {
	v := verdictOf(err)
	if ctx.Err() == context.DeadlineExceeded { // AfterFailure sees the code that the engine records
		v.err = Code(events.CodeTimeout, err, nil)
	}
	switch {
	case v.final:
		return task.Outcome{Err: v.failure()}
	case v.release != nil:
		return task.Outcome{Release: true, Wait: v.release.after}
	case v.snooze > 0:
		return task.Outcome{Snooze: v.snooze}
	}
	return b.afterFailure(p, a, v.failure(), b.backoff(a, v), b.now())
}

// backoff returns after which wait the policy, or the verdict in its place, runs the task again; 0 when the attempts
// are used up.
func (b *Bound[P, R]) backoff(a task.Attempt, v verdict) time.Duration {
	failures := a.Failures + 1
	switch {
	case failures >= a.Policy.MaxAttempts:
		return 0
	case v.retry:
		return max(v.retryAfter, leastWait)
	}
	return max(a.Policy.Backoff.Delay(failures, b.random()), leastWait)
}

func (b *Bound[P, R]) afterFailure(
	p P, a task.Attempt, e *events.Error, backoff time.Duration, now time.Time,
) task.Outcome {
	rule := b.rules.AfterFailure
	if rule == nil {
		return task.Outcome{Err: e, Wait: backoff}
	}
	var next time.Time
	if backoff > 0 {
		next = now.Add(backoff)
	}
	out, err := followed(task.Outcome{Err: e}, "after failure", rule(p, Failure{
		Err: &task.Error{
			Task:       a.Task,
			Attempt:    a.Number,
			Code:       e.Code,
			Message:    e.Message,
			Retryable:  e.Retryable,
			Properties: e.Properties,
		},
		Attempt: a.Number,
		Lost:    a.Lost,
		Backoff: next,
	}, now), now)
	if err != nil {
		return task.Outcome{Err: rejection(fmt.Errorf("%w; the attempt failed with %s: %s", err, e.Code, e.Message))}
	}
	return out
}

// leastWait is the unit of stored times; a wait of 0 would be none.
const leastWait = time.Millisecond

// followed adds to an outcome the run that a rule answered with. A time with a monotonic reading was made of now, and
// is the wait between the two: a wrong wall clock here must not change it. Any other is a time of day.
func followed(out task.Outcome, rule string, next, now time.Time) (task.Outcome, error) {
	switch wait := next.Sub(now); {
	case next.IsZero():
	case wait > events.MaxDelay:
		return task.Outcome{}, checkDelay(rule, wait)
	case next == next.Round(0): // it has no monotonic reading, which Round strips
		out.Next = next
	default:
		out.Wait = max(wait, leastWait)
	}
	return out, nil
}

func checkDelay(field string, d time.Duration) error {
	if d < 0 || d > events.MaxDelay {
		return &store.InvalidError{Field: field, Problem: fmt.Sprintf("%s, want 0 to ten years", d)}
	}
	return nil
}
