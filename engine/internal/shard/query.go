package shard

import (
	"context"
	"errors"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/outcome"
	"taskledger/events"
	"taskledger/projection"
	"taskledger/projection/listing"
	"taskledger/task"
)

// answer answers batches of reads. What is due by now is ready in all of them.
func (o *Owner) answer(asked []Delivery) {
	if len(asked) == 0 {
		return
	}
	began := time.Since(base)
	now := o.clock.Now(o.wall(), began)
	if o.cfg.Host.MayStart() {
		o.ring(o.extensions.tasks, now, began)
	}
	o.ringExtensions(now, began)
	o.scan = scanBudget{tasks: scanTasks}
	for _, q := range asked {
		o.query(q)
	}
}

// query answers a batch of reads from the committed state. What memory does not tell is found out by other goroutines.
func (o *Owner) query(d Delivery) {
	if !o.cfg.Host.MayStart() {
		return // the session may be over: somebody else answers
	}
	answers := make([]command.Answer, len(d.Commands))
	var later []laterRead
	size := 0
	for i, c := range d.Commands {
		if size > command.MaxReadBytes {
			answers[i].Code = command.AnswerTryAgain
			continue
		}
		a, read := o.read(c)
		if read != nil {
			later = append(later, laterRead{i, read})
			continue
		}
		size = a.Fit(size)
		answers[i] = a
	}
	if len(later) == 0 {
		d.Reply(d.Batch, answers, false)
		return
	}
	d.Reply(d.Batch, nil, false)
	o.cfg.Host.Spawn(func(ctx context.Context) {
		readAll(ctx, answers, later, size)
		if ctx.Err() == nil {
			d.Reply(d.Batch, answers, false)
		}
	})
}

// read answers one query, or returns what has to be done outside the owner's goroutine to answer it.
func (o *Owner) read(c command.Command) (command.Answer, func(context.Context) command.Answer) {
	if refusal, refused := command.RefuseInvalid(c); refused {
		return refusal, nil
	}
	if refusal, refused := o.shard().Misdirected(c); refused {
		return refusal, nil
	}
	switch c := c.(type) {
	case *command.Get:
		return o.get(c)
	case *command.Await:
		return o.await(c)
	case *command.List:
		return o.list(c), nil
	case *command.Tally:
		return command.Answer{Data: command.EncodeTallies(o.state, c)}, nil
	case *command.Info:
		return o.info(c), nil
	case *command.Explain:
		return o.explain(c), nil
	case *command.HandOver:
		return command.Answer{}, func(ctx context.Context) command.Answer { return o.giveTo(ctx, c.Node) }
	}
	if a, later, is := o.answerExtension(c); is {
		return a, later
	}
	return command.Misplaced(c, o.ownership.Session.ID), nil
}

func (o *Owner) get(c *command.Get) (command.Answer, func(context.Context) command.Answer) {
	t := o.state.Task(c.Task)
	var copied *projection.Task
	if t != nil {
		value := *t
		copied = &value
	}
	if !c.Linear && (t == nil || !t.Elided()) {
		return o.taskAnswer(copied), nil
	}
	return command.Answer{}, func(ctx context.Context) command.Answer {
		if c.Linear {
			if err := o.prover.stillOwner(ctx); err != nil {
				return tryLater(ctx)
			}
		}
		if copied == nil || !copied.Elided() {
			return o.taskAnswer(copied)
		}
		return o.searches.find(ctx, recalled{*c, copied.Last}, func(ctx context.Context) command.Answer {
			if err := o.cfg.Loader.recall(ctx, o.ownership.Shard, copied); errors.Is(err, events.ErrDamaged) {
				return command.Refused(command.AnswerInvalid, "task %s: %v", c.Task, err)
			} else if err != nil && (c.Linear || ctx.Err() != nil) {
				return o.cfg.Loader.unread(ctx, err)
			}
			return o.taskAnswer(copied)
		})
	}
}

// recalled names a task as it was after an event, with what it has left to the journal.
type recalled struct {
	command.Get
	last events.Ref
}

func (o *Owner) taskAnswer(t *projection.Task) command.Answer {
	if t == nil {
		return command.Answer{Code: command.AnswerNotFound}
	}
	return command.Answer{Life: t.Created, Number: int64(o.cfg.Host.Sighted().Of(t)), Data: command.EncodeTask(t)}
}

// await answers with the outcome of a run, or with the life and run to wait for and the entry up to which it had not
// come. What it concludes from there being no later event is proven first.
func (o *Owner) await(c *command.Await) (command.Answer, func(context.Context) command.Answer) {
	t := o.state.Task(c.Task)
	switch {
	case t == nil && c.Life == 0:
		return command.Answer{}, o.proven(func(context.Context) command.Answer {
			return command.Answer{Code: command.AnswerNotFound}
		})
	case t == nil || c.Life != 0 && t.Created != c.Life:
		return command.Answer{}, func(ctx context.Context) command.Answer {
			return o.searches.find(ctx, *c, func(ctx context.Context) command.Answer {
				return o.cfg.Loader.searchForward(ctx, o.ownership.Shard, c, o.prover.stillOwner)
			})
		}
	}
	run := uint32(c.Run)
	a, later := o.awaitRun(t, run)
	if run != 0 && (run <= t.Runs || !t.Final()) {
		return a, later
	}
	if later == nil {
		later = func(context.Context) command.Answer { return a }
	}
	return command.Answer{}, o.proven(later)
}

// proven lets an answer wait for the proof that the shard still is this owner's.
func (o *Owner) proven(read func(context.Context) command.Answer) func(context.Context) command.Answer {
	return func(ctx context.Context) command.Answer {
		if err := o.prover.stillOwner(ctx); err != nil {
			return tryLater(ctx)
		}
		return read(ctx)
	}
}

// awaitRun is await for a run of the task's present life; 0 = the one that is due or under way, or the last.
func (o *Owner) awaitRun(t *projection.Task, run uint32) (command.Answer, func(context.Context) command.Answer) {
	if run == 0 {
		run = t.Runs
		if !t.Final() {
			run++
		}
	}
	out := outcome.OfLast(t)
	switch {
	case run > t.Runs && !t.Final():
		return command.Answer{Life: t.Created, Run: run, Number: int64(o.head.Number)}, nil
	case run > t.Runs && !t.ErrorElided:
		out.End()
		return outcomeAnswer(out), nil
	case run > t.Runs:
		run = t.Runs // its failure is that of the run which was taken away, too
	case run == t.Runs && t.Status != task.Running && !t.ResultElided && !t.ErrorElided &&
		(t.Status == task.Success || t.RunEnded):
		return outcomeAnswer(out), nil
	}
	copied := *t
	return command.Answer{}, func(ctx context.Context) command.Answer {
		a := o.searches.find(
			ctx,
			command.Await{Task: t.ID, Life: copied.Created, Run: uint64(run)},
			func(ctx context.Context) command.Answer {
				return o.cfg.Loader.searchBack(ctx, o.ownership.Shard, &copied, run)
			},
		)
		if a.Code == command.AnswerNotKept && copied.ErrorElided && run == copied.Runs {
			return outcomeAnswer(out) // the beginning of the error is better than none
		}
		return a
	}
}

// These limits bound all lists and questions of fronts that an owner answers in one turn: what does not fit goes on
// in a later turn. scanFor is also the time that each front has for what it records unasked.
const (
	scanTasks = 2000
	scanFor   = 500 * time.Microsecond
	// scanBytes bounds the bytes that the answers to them have in one turn, up to one answer.
	scanBytes = 512 << 10
)

// scanBudget counts what may still be scanned in a turn.
type scanBudget struct {
	tasks int           // or records of a front
	bytes int           // of the answers so far
	until time.Duration // on the monotonic clock; 0 = none has begun
}

// late reports whether the time is over, which begins with the first call.
func (l *scanBudget) late() bool {
	now := time.Since(base)
	if l.until == 0 {
		l.until = now + scanFor
	}
	return now > l.until
}

// took counts what one has looked at, and the bytes of its answer.
func (l *scanBudget) took(tasks, bytes int) {
	l.tasks -= tasks
	if l.bytes += bytes; l.bytes >= scanBytes {
		l.tasks = 0
	}
}

// list answers with tasks that match, newest first, and where the list goes on.
func (o *Owner) list(c *command.List) command.Answer {
	cluster := o.cfg.Cluster
	if c.Cluster != "" && c.Cluster != cluster {
		return command.Refused(command.AnswerInvalid, "cursor: it is of another cluster")
	}
	o.scan.late()
	most := o.scan.tasks
	if c.Scan > 0 {
		most = int(min(c.Scan, int64(most)))
	}
	found := listing.Look(o.state, c.Filter(), c.From(), int(min(max(c.Limit, 1), command.MaxPage)), most, o.scan.late)
	data := command.EncodePage(found, o.cfg.Host.Sighted(), cluster)
	o.scan.took(found.Looked, len(data))
	return command.Answer{Data: data}
}

// giveTo hands the shard over to a node that asks for it.
func (o *Owner) giveTo(ctx context.Context, target string) command.Answer {
	if target == o.ownership.Session.ID {
		return command.Answer{} // the request was under way when its sender got the shard
	}
	if !o.cfg.Placement.Wants(o.ownership.Shard, target) {
		return command.Refused(command.AnswerState, "the shard stays where it is")
	}
	if o.cfg.Admission.Usage().Full {
		return command.Refused(command.AnswerState, "the shard stays where it is: %s", command.StoreFull)
	}
	result := make(chan error, 1)
	request := &handOverRequest{target, func(err error) { result <- err }}
	if !o.ending.asked.CompareAndSwap(nil, request) {
		return tryLater(ctx)
	}
	o.inbox.wake.Notify()
	select {
	case err := <-result:
		if err != nil {
			return command.Refused(command.AnswerState, "%v", err)
		}
		return command.Answer{}
	case <-o.ending.done:
		return command.Refused(command.AnswerState, "the shard has moved")
	case <-ctx.Done():
		if o.ending.asked.CompareAndSwap(request, nil) {
			return command.Refused(command.AnswerState, "the owner is held up")
		}
		return command.Answer{Code: command.AnswerTryAgain} // it is being handed over
	}
}
