package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"taskledger/events"
	"taskledger/internal/message"
	"taskledger/internal/wire"
	"taskledger/projection"
	"taskledger/store"
)

// readAgain is how long a batch of questions waits for what takes long. What is not known by then is asked again.
const readAgain = time.Second

// laterRead answers a question outside the owner's goroutine; it ends with its context at the latest.
type laterRead struct {
	at   int // in the batch
	read func(ctx context.Context) answer
}

// query answers a batch of reads from the committed state. What memory does not tell is found out by other goroutines.
func (o *owner) query(d delivery) {
	if !o.m.mayRead() {
		return // the session may be over: somebody else answers
	}
	answers := make([]answer, len(d.commands))
	var later []laterRead
	size := 0
	for i, c := range d.commands {
		if size > maxReadBytes {
			answers[i].code = answerTryAgain
			continue
		}
		a, read := o.read(c)
		if read != nil {
			later = append(later, laterRead{i, read})
			continue
		}
		size = a.fit(size)
		answers[i] = a
	}
	if len(later) == 0 {
		d.reply(d.batch, answers, false)
		return
	}
	d.reply(d.batch, nil, false)
	o.m.spawn(func(ctx context.Context) {
		readAll(ctx, answers, later, size)
		if ctx.Err() == nil {
			d.reply(d.batch, answers, false)
		}
	})
}

// readAll adds to answers of the given size what is read side by side, until the time is over or they are too large together.
func readAll(ctx context.Context, answers []answer, later []laterRead, size int) {
	ctx, enough := context.WithTimeout(ctx, readAgain)
	defer enough()
	var reads sync.WaitGroup
	var mu sync.Mutex
	for _, l := range later {
		reads.Go(func() {
			a := l.read(ctx)
			mu.Lock()
			defer mu.Unlock()
			if size = a.fit(size); size > maxReadBytes {
				enough()
			}
			answers[l.at] = a
		})
	}
	reads.Wait()
}

// read answers one query, or returns what has to be done outside the owner's goroutine to answer it.
func (o *owner) read(c command) (answer, func(context.Context) answer) {
	switch c := c.(type) {
	case *getCommand:
		return o.get(c)
	case *awaitCommand:
		return o.await(c)
	case *listCommand:
		return o.list(c), nil
	case *infoCommand:
		return o.info(c), nil
	case *explainCommand:
		return o.explain(c)
	case *handOverCommand:
		return answer{}, func(ctx context.Context) answer { return o.giveTo(ctx, c.Node) }
	}
	return refused(answerInvalid, "command %d is not for this lane", c.op()), nil
}

func (o *owner) get(c *getCommand) (answer, func(context.Context) answer) {
	t := o.state.Task(c.Task)
	var copied *projection.Task
	if t != nil {
		value := *t
		copied = &value
	}
	if !c.Linear && (t == nil || !t.ParamsElided && !t.ResultElided) {
		return taskAnswer(copied), nil
	}
	return answer{}, func(ctx context.Context) answer {
		if c.Linear {
			if err := o.stillOwner(ctx); err != nil {
				return tryLater(ctx)
			}
		}
		if copied == nil || !copied.ParamsElided && !copied.ResultElided {
			return taskAnswer(copied)
		}
		return o.find(ctx, recalled{*c, copied.Last}, func(ctx context.Context) answer {
			if err := o.m.recall(ctx, o.ownership.Shard, copied); errors.Is(err, events.ErrDamaged) {
				return refused(answerInvalid, "task %s: %v", c.Task, err)
			} else if err != nil && (c.Linear || ctx.Err() != nil) {
				return o.unread(ctx, err)
			}
			return taskAnswer(copied)
		})
	}
}

// recalled names a task as it was after an event, with what it has left to the journal.
type recalled struct {
	getCommand
	last events.Ref
}

func taskAnswer(t *projection.Task) answer {
	if t == nil {
		return answer{code: answerNotFound}
	}
	return answer{life: t.Created, data: encodeTask(t)}
}

// tryLater lets a question be asked again after a pause.
func tryLater(ctx context.Context) answer {
	select {
	case <-ctx.Done():
	case <-time.After(readAgain):
	}
	return answer{code: answerTryAgain}
}

// recall fills in what a finished task has left to the journal, as far as that is kept.
func (m *member) recall(ctx context.Context, shard int, t *projection.Task) (err error) {
	if t.ParamsElided && t.Params == nil {
		if t.Params, err = m.payloadAt(ctx, shard, t.ParamsAt); err != nil && !errors.Is(err, store.ErrTrimmed) {
			return err
		}
	}
	if t.ResultElided {
		if t.Result, err = m.payloadAt(ctx, shard, t.Outcome); err != nil && !errors.Is(err, store.ErrTrimmed) {
			return err
		}
	}
	return nil
}

// payloadAt reads the parameters or the result that an event carries.
func (m *member) payloadAt(ctx context.Context, shard int, ref events.Ref) (events.Payload, error) {
	ev, err := m.reader.Event(ctx, shard, ref)
	if err != nil {
		return nil, err
	}
	switch b := ev.Body.(type) {
	case *events.Created:
		return b.Params, nil
	case *events.Merged:
		return b.Params, nil
	case *events.Succeeded:
		return b.Result, nil
	}
	return nil, fmt.Errorf("%w: event %s is %s and carries no payload", events.ErrDamaged, ev.Position, ev.Kind())
}

// await answers with the outcome of a run, or with the life and run to wait for and the entry up to which it had not
// come. What it concludes from there being no later event is proven first.
func (o *owner) await(c *awaitCommand) (answer, func(context.Context) answer) {
	t := o.state.Task(c.Task)
	switch {
	case t == nil && c.Life == 0:
		return answer{}, o.proven(func(context.Context) answer { return answer{code: answerNotFound} })
	case t == nil || c.Life != 0 && t.Created != c.Life:
		return answer{}, func(ctx context.Context) answer {
			return o.find(ctx, *c, func(ctx context.Context) answer { return o.searchForward(ctx, c) })
		}
	}
	run := uint32(c.Run)
	a, later := o.awaitRun(t, run)
	if run != 0 && (run <= t.Runs || !t.Final()) {
		return a, later
	}
	if later == nil {
		later = func(context.Context) answer { return a }
	}
	return answer{}, o.proven(later)
}

// proven lets an answer wait for the proof that the shard still is this owner's.
func (o *owner) proven(read func(context.Context) answer) func(context.Context) answer {
	return func(ctx context.Context) answer {
		if err := o.stillOwner(ctx); err != nil {
			return tryLater(ctx)
		}
		return read(ctx)
	}
}

// awaitRun is await for a run of the task's present life; 0 = the one that is due or under way, or the last.
func (o *owner) awaitRun(t *projection.Task, run uint32) (answer, func(context.Context) answer) {
	if run == 0 {
		run = t.Runs
		if !t.Final() {
			run++
		}
	}
	out := outcomeOfLast(t)
	switch {
	case run > t.Runs && !t.Final():
		return answer{life: t.Created, run: run, number: int64(o.head.Number)}, nil
	case run > t.Runs:
		out.end()
		return outcomeAnswer(out), nil
	case run == t.Runs && t.Status != projection.Running && !t.ResultElided && (t.Status == projection.Success || t.RunEnded):
		return outcomeAnswer(out), nil
	}
	copied := *t
	return answer{}, func(ctx context.Context) answer {
		return o.find(ctx, awaitCommand{t.ID, copied.Created, uint64(run)}, func(ctx context.Context) answer { return o.searchBack(ctx, &copied, run) })
	}
}

func outcomeAnswer(o outcome) answer {
	var w wire.Writer
	w.Array(1)
	o.encode(&w, events.MaxPayloadBytes+1)
	return answer{life: o.life, run: o.run, data: w.B}
}

// list answers with the first tasks, in id order, that match.
func (o *owner) list(c *listCommand) answer {
	limit := int(min(max(c.Limit, 1), maxPage))
	var page []*projection.Task
	for t := range o.state.Tasks() {
		if t.ID <= c.After || t.ID == events.Settings || !c.matches(t) {
			continue
		}
		at, _ := slices.BinarySearchFunc(page, t, byID)
		if at >= limit {
			continue
		}
		page = slices.Insert(page, at, t)
		page = page[:min(len(page), limit)]
	}
	told := taskPage{More: len(page) == limit}
	for size, rest := 0, page; len(rest) > 0; rest = rest[1:] {
		if size >= maxAnswerBytes/2 {
			told.More = true
			break
		}
		task := encodeTask(rest[0])
		told.Tasks = append(told.Tasks, task)
		size += len(task)
	}
	return answer{data: message.Encode(told)}
}

// taskPage answers a list: the tasks, each encoded by itself, and whether there may be more after them.
type taskPage struct {
	Tasks [][]byte
	More  bool
}

func decodePage(data []byte) (page []projection.Task, more bool, err error) {
	told, err := readMessage[taskPage](data)
	if err != nil {
		return nil, false, err
	}
	for _, data := range told.Tasks {
		t, err := decodeTask(data)
		if err != nil {
			return nil, false, err
		}
		page = append(page, t)
	}
	return page, told.More && len(page) > 0, nil
}

func byID(a, b *projection.Task) int { return cmp.Compare(a.ID, b.ID) }

// giveTo hands the shard over to a node that asks for it.
func (o *owner) giveTo(ctx context.Context, target string) answer {
	if target == o.ownership.Session.ID {
		return answer{} // the request was under way when its sender got the shard
	}
	if !o.m.wantsToGive(o.ownership.Shard, target) {
		return refused(answerState, "the shard stays where it is")
	}
	if o.m.usage.Load().Full {
		return refused(answerState, "the shard stays where it is: %s", fullStore)
	}
	result := make(chan error, 1)
	request := &handOverRequest{target, func(err error) { result <- err }}
	if !o.asked.CompareAndSwap(nil, request) {
		return tryLater(ctx)
	}
	o.inbox.wake.notify()
	select {
	case err := <-result:
		if err != nil {
			return refused(answerState, "%v", err)
		}
		return answer{}
	case <-o.stopped:
		return refused(answerState, "the shard has moved")
	case <-ctx.Done():
		if o.asked.CompareAndSwap(request, nil) {
			return refused(answerState, "the owner is held up")
		}
		return answer{code: answerTryAgain} // it is being handed over
	}
}
