package world

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"taskledger/engine"
	"taskledger/events"
	"taskledger/integration/robustness/history"
	"taskledger/integration/robustness/traffic"
	"taskledger/store"
	"taskledger/task"
)

const (
	// waitMost bounds the wait for a future, if its world does not give it up earlier.
	waitMost = 15 * time.Minute
	// listMost bounds the time that a list may take.
	listMost = 20 * time.Second
)

// caller makes one call at a time and records what it asked and was told.
type caller struct {
	world     *world
	number    int
	principal string // for whom the process asks; "" = for itself
	traced    bool   // each call has a request id and a trace of its own
}

// caller returns a new caller, which asks for somebody else now and then.
func (w *world) caller() *caller {
	return &caller{w, w.record.Caller(), pick(w.dice, "", "", "", "ada", "bob"), w.dice.chance(0.4)}
}

// caller returns the caller of a call, as the process passes it on and as events name it.
func (c *caller) caller(p *process) (told, named events.Caller) {
	told.Principal = c.principal
	if c.traced {
		n := c.world.record.Trace()
		told.RequestID, told.Traceparent = fmt.Sprint("request-", n), fmt.Sprintf("00-%032x-%016x-01", n, n)
	}
	named = told
	named.Principal = cmp.Or(told.Principal, p.principal)
	return told, named
}

// do makes a call, with a given timeout. ask fills in what it learns.
func (c *caller) do(p *process, op history.Operation, timeout time.Duration, ask func(context.Context, *history.Operation) error) history.Operation {
	ctx, cancel := context.WithTimeout(c.world.waitCtx, timeout)
	defer cancel()
	var told events.Caller
	told, op.Caller = c.caller(p)
	op.Client, op.Call = c.number, c.world.record.Now()
	err := ask(engine.WithCaller(ctx, told), &op)
	return c.told(p, op, err)
}

// told records what came of a call.
func (c *caller) told(p *process, op history.Operation, err error) history.Operation {
	op.Return, op.Answer, op.OtherRequest = c.world.record.Now(), traffic.Answer(err), traffic.OtherRequest(err)
	if err != nil {
		op.Error = err.Error()
	}
	switch {
	case op.Answer == history.OK:
	case p.killed.Err() != nil: // nobody was there to hear it
		op.Answer = history.Unknown
	case op.Verb == history.Wait && op.Answer != history.Absent && !errors.Is(err, task.ErrClosed):
		op.Answer = history.Untold
	}
	if op.Answer == history.Unknown || op.Answer == history.Untold {
		op.Return = 0
		c.number = c.world.record.Caller()
	}
	if op.Task != "" || op.Verb == history.List { // what was refused before it had an id concerns no task
		c.world.record.Operate(op)
	}
	return op
}

// timeout draws how long a caller waits for an answer.
func (c *caller) timeout() time.Duration {
	return c.world.dice.between(500*time.Millisecond, 6*time.Second)
}

// order is a submit.
type order struct {
	id       events.TaskID // "" = drawn, or derived of the request
	behavior string
	job      job
	delay    time.Duration
	request  string // its key
	raw      bool   // by the behavior's name
	by       string // of an order whose request names its task: for whom it is made; "" = for the process itself

	within    time.Duration // of the submit is the deadline; 0 = there is none
	tags      []string
	priority  int64  // 0 = that of the behavior
	losses    int    // so many more than the behavior allows; not by its name
	forbidden string // the limit that it breaks
}

// submit returns the future, of which the id is "" when nothing was accepted.
func (c *caller) submit(p *process, o order) (*engine.Future, history.Operation) {
	b := p.behavior(o.behavior)
	if !o.raw {
		b = varied(b, o.losses)
	}
	op := history.Operation{Verb: history.Submit, Task: string(o.id), Options: history.Options{Delay: int64(o.delay)}, RunsAgain: b.Policy().Existing == events.RunAgain, Request: o.request,
		Terms: traffic.Terms(b.Policy(), o.priority), Forbidden: o.forbidden}
	o.job.Pad = c.world.pad
	params, err := json.Marshal(o.job)
	if err != nil {
		panic(err) // a struct of texts and numbers
	}
	if o.id == "" && o.request != "" {
		c.principal = o.by
		op.By, op.Body = cmp.Or(o.by, p.principal)+" "+o.behavior, fmt.Sprintf("%s after %s, priority %d", params, o.delay, o.priority)
	}
	options := task.SubmitOptions{ID: o.id, RequestKey: o.request, Delay: o.delay, Priority: o.priority, Tags: o.tags}
	if o.within != 0 {
		options.Deadline = p.now().Add(o.within)
	}
	op.Deadline, op.Tags = events.MillisOf(options.Deadline), strings.Join(o.tags, " ")
	var future *engine.Future
	op = c.do(p, op, c.timeout(), func(ctx context.Context, op *history.Operation) (err error) {
		if o.raw {
			future, err = p.client.SubmitRaw(ctx, o.behavior, params, options)
		} else {
			future, err = p.client.Submit(ctx, b, params, options)
		}
		op.Task, op.Joined, op.Repeated = string(future.ID()), future.Joined(), future.Repeated()
		if op.Task == "" && errors.Is(err, task.ErrUnknown) {
			c.world.record.Damage(acknowledged, "whether a task was submitted is unknown, and so is its id: %v", err)
		}
		return err
	})
	return future, op
}

// submitMany submits orders together, under a key of all or none, for somebody. Each is recorded as a call of a caller
// of its own.
func (c *caller) submitMany(p *process, orders []order, key, by string) {
	ctx, cancel := context.WithTimeout(c.world.waitCtx, c.timeout())
	defer cancel()
	c.principal = by
	told, named := c.caller(p)
	ops, all := make([]history.Operation, len(orders)), make([]task.Request, len(orders))
	for i, o := range orders { // they are not padded: so many would fill the store while journals are not trimmed
		params, err := json.Marshal(o.job)
		if err != nil {
			panic(err) // a struct of texts and numbers
		}
		b := p.behavior(o.behavior)
		all[i] = task.Request{Behavior: b, Params: params, SubmitOptions: task.SubmitOptions{ID: o.id, Delay: o.delay}}
		ops[i] = history.Operation{Verb: history.Submit, Task: string(o.id), Options: history.Options{Delay: int64(o.delay)}, RunsAgain: b.Policy().Existing == events.RunAgain, Request: key,
			Terms: traffic.Terms(b.Policy(), 0), Caller: named, Call: c.world.record.Now()}
		if o.id == "" && key != "" {
			ops[i].By, ops[i].Body = fmt.Sprint(named.Principal, " ", o.behavior, ", number ", i), fmt.Sprintf("%s after %s", params, o.delay)
		}
	}
	for i, r := range p.client.SubmitMany(engine.WithCaller(ctx, told), all, task.ManyOptions{RequestKey: key}) {
		one := caller{world: c.world, number: c.world.record.Caller()}
		op := ops[i]
		op.Client, op.Task, op.Joined, op.Repeated = one.number, string(r.ID()), r.Joined(), r.Repeated()
		if op.Task == "" && errors.Is(r.Err, task.ErrUnknown) {
			c.world.record.Damage(acknowledged, "whether a task was submitted is unknown, and so is its id: %v", r.Err)
		}
		one.told(p, op, r.Err)
		r.Close()
	}
}

// wait waits for a future, longer than anything lasts; request is that of the submit that it came from.
func (c *caller) wait(p *process, f *engine.Future, request string) history.Operation {
	defer f.Close()
	return c.do(p, history.Operation{Verb: history.Wait, Task: string(f.ID()), Request: request}, waitMost, func(ctx context.Context, op *history.Operation) (err error) {
		op.Outcome, err = traffic.Outcome(f.Wait(ctx))
		return err
	})
}

// waitAttached waits for a task that somebody else has submitted. While its shard is not served such a wait is told so,
// and asks again.
func (c *caller) waitAttached(p *process, task events.TaskID) history.Operation {
	return c.do(p, history.Operation{Verb: history.Wait, Task: string(task)}, waitMost, func(ctx context.Context, op *history.Operation) error {
		for {
			f := p.client.Attach(task)
			outcome, err := traffic.Outcome(f.Wait(ctx))
			f.Close()
			if !errors.Is(err, store.ErrUnavailable) || ctx.Err() != nil {
				op.Outcome = outcome
				return err
			}
			select {
			case <-time.After(time.Second):
			case <-ctx.Done():
			}
		}
	})
}

// get reads a task linearly.
func (c *caller) get(p *process, task string) history.Operation {
	return c.do(p, history.Operation{Verb: history.Get, Task: task}, c.timeout(), func(ctx context.Context, op *history.Operation) error {
		t, err := p.client.GetLinear(ctx, events.TaskID(task))
		if errors.Is(err, store.ErrUnavailable) { // it changes nothing: who hears nothing knows nothing
			return errNoAnswer
		}
		if err == nil {
			traffic.Shown(op, &t)
		}
		return err
	})
}

var errNoAnswer = errors.New("no answer")

// pause keeps a behavior from starting, or ends that.
func (c *caller) pause(p *process, on bool, behavior, reason string) history.Operation {
	op := history.Operation{Verb: history.Unpause, Task: string(events.Settings), Behavior: behavior}
	if on {
		op.Verb, op.Reason = history.Pause, reason
	}
	if len(reason) > events.MaxNameBytes {
		op.Forbidden = "reason"
	}
	return c.do(p, op, c.timeout(), func(ctx context.Context, _ *history.Operation) error {
		if on {
			return p.client.Operations().Pause(ctx, behavior, reason)
		}
		return p.client.Operations().Unpause(ctx, behavior)
	})
}

// settings reads what is paused.
func (c *caller) settings(p *process, timeout time.Duration) history.Operation {
	op := history.Operation{Verb: history.Settings, Task: string(events.Settings)}
	return c.do(p, op, timeout, func(ctx context.Context, op *history.Operation) (err error) {
		op.Paused, err = traffic.Paused(ctx, p.client)
		return err
	})
}

// list reads every page of a list, of a behavior or of all, and waits for shards that are missing.
func (c *caller) list(p *process, behavior string, limit int) history.Operation {
	op := history.Operation{Verb: history.List, Behavior: behavior}
	return c.do(p, op, listMost, func(ctx context.Context, op *history.Operation) error {
		return traffic.List(ctx, p.client, task.Filter{Behavior: behavior, Limit: limit}, op, func() {
			time.Sleep(c.world.dice.between(0, 300*time.Millisecond))
		})
	})
}

// operate makes a call that changes a task.
func (c *caller) operate(p *process, verb history.Verb, task string) history.Operation {
	return c.do(p, history.Operation{Verb: verb, Task: task}, c.timeout(), func(ctx context.Context, _ *history.Operation) error {
		return traffic.Operate(ctx, p.client, verb, events.TaskID(task))
	})
}
