package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"taskledger/engine"
	"taskledger/etcdstore"
	"taskledger/events"
	"taskledger/integration/robustness/clock"
	"taskledger/integration/robustness/history"
	"taskledger/integration/robustness/role"
	"taskledger/integration/robustness/traffic"
	"taskledger/natsbus"
)

const (
	// callers is how many calls a client makes at a time; each thinks between two.
	callers    = 6
	thinks     = 80 * time.Millisecond
	callWithin = 3 * time.Second
	// watchedFutures is how many submits of a hundred keep their future.
	watchedFutures = 25
)

// operations is the record of what all clients did. Its methods may be called concurrently.
type operations struct {
	mu      sync.Mutex
	clients int
	all     []history.Operation
	acked   map[string]bool // tasks whose submit was acknowledged, and that nobody has deleted or cancelled
	waits   map[string]int  // under way, by task
	acks    int             // operations that were told OK
}

// number is that of one more client: of who makes one call at a time, and of who got no answer to the last one.
func (o *operations) number() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.clients++
	return o.clients
}

func (o *operations) add(op history.Operation) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.all = append(o.all, op)
	if op.Answer == history.OK {
		o.acks++
		switch op.Verb {
		case history.Submit:
			o.acked[op.Task] = true
		case history.Cancel, history.Delete: // no function will say that it is over
			delete(o.acked, op.Task)
		}
	}
}

// open counts the waits under way for a task.
func (o *operations) open(task string, more int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.waits[task] += more; o.waits[task] == 0 {
		delete(o.waits, task)
	}
}

// waited returns the tasks that somebody waits for.
func (o *operations) waited() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Collect(maps.Keys(o.waits))
}

func newOperations() *operations {
	return &operations{acked: map[string]bool{}, waits: map[string]int{}}
}

// tasks returns the ids of all tasks that anybody asked for.
func (o *operations) tasks() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	ids := map[string]bool{}
	for _, op := range o.all {
		if op.Verb == history.Submit && op.Task != "" {
			ids[op.Task] = true
		}
	}
	return slices.Sorted(maps.Keys(ids))
}

// acknowledged reports whether a submit of the task was.
func (o *operations) acknowledged(task string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.acked[task]
}

// answered is how many operations were told OK so far.
func (o *operations) answered() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.acks
}

// client is a client of the engine in this process.
type client struct {
	*engine.Client
	links
	name  string
	begin int64
	done  *operations
	ended chan error
	end   context.CancelFunc
	close []func() error

	calling, waiting sync.WaitGroup
}

// startClient connects a client over links of its own. Only stop ends it.
func startClient(ctx context.Context, name string, l links, shards int, done *operations, begin int64, log *slog.Logger) (*client, error) {
	c := &client{links: l, name: name, begin: begin, done: done, ended: make(chan error, 1), end: func() {}}
	if err := c.open(ctx, shards, log); err != nil {
		return nil, errors.Join(fmt.Errorf("client %s: %w", name, err), c.stop())
	}
	running, end := context.WithCancel(context.Background())
	c.end = end
	go func() { c.ended <- c.Run(running) }()
	c.close = append(c.close, func() error { return <-c.ended })
	return c, nil
}

func (c *client) open(ctx context.Context, shards int, log *slog.Logger) error {
	log = log.With("client", c.name)
	ctx, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	store, err := etcdstore.Open(ctx, etcdstore.Config{Endpoints: c.endpoints(), Shards: shards, Log: log})
	if err != nil {
		return err
	}
	c.close = append(c.close, store.Close)
	bus, err := natsbus.Open(natsbus.Config{URLs: []string{c.natsURL()}, Key: store.Cluster().Key, Log: log})
	if err != nil {
		return err
	}
	c.close = append(c.close, bus.Close)
	c.Client, err = engine.NewClient(engine.ClientConfig{Store: store, Bus: bus, Name: c.name, Log: log})
	return err
}

// stop waits for the calls under way, and leaves. What takes longer than a process may goes on in the background.
func (c *client) stop() error {
	stopped := make(chan error, 1)
	go func() {
		c.calling.Wait()
		c.waiting.Wait()
		c.end()
		var errs []error
		for i := len(c.close) - 1; i >= 0; i-- {
			errs = append(errs, c.close[i]())
		}
		stopped <- errors.Join(errs...)
	}()
	select {
	case err := <-stopped:
		return err
	case <-time.After(2 * stopWithin):
		return fmt.Errorf("client %s: %w, %s", c.name, errTooSlow, 2*stopWithin)
	}
}

// send begins to make requests, whose submits carry pad bytes more, until submit ends, and to wait for outcomes until wait
// does.
func (c *client) send(submit, wait context.Context, seed uint64, pad int) {
	for i := range callers {
		c.calling.Go(func() {
			source := traffic.NewSource(fmt.Sprintf("%s%c", c.name, 'a'+i), seed)
			source.Pad = pad
			number := c.done.number()
			for submit.Err() == nil {
				number = c.call(wait, number, source.Next())
				sleep(submit, source.Think(thinks))
			}
		})
	}
}

// call makes one request and returns the number of the client that goes on. Waits take long: another client makes them.
func (c *client) call(ctx context.Context, number int, r traffic.Request) int {
	if r.Verb == history.Wait {
		c.waiting.Go(func() { c.wait(ctx, r.Task, "", c.Attach(events.TaskID(r.Task))) })
		return number
	}
	ask, cancel := context.WithTimeout(ctx, callWithin)
	defer cancel()
	op := r.Operation(number, c.begin)
	if r.Named {
		op.Request = fmt.Sprint(number, "-", op.Call)
	}
	f := r.Do(ask, c.Client, &op, c.begin)
	c.done.add(op)
	if f != nil && op.Answer == history.OK && op.Call%100 < watchedFutures {
		c.waiting.Go(func() { c.wait(ctx, op.Task, op.Request, f) })
	}
	if op.Answer == history.Unknown {
		return c.done.number()
	}
	return number
}

// wait waits for the outcome of a future until ctx ends: who has heard nothing by then is untold.
func (c *client) wait(ctx context.Context, task, request string, f *engine.Future) {
	c.done.open(task, 1)
	op := traffic.Request{Verb: history.Wait, Task: task}.Operation(c.done.number(), c.begin)
	op.Request = request
	traffic.Settle(&op, traffic.Wait(ctx, f, &op), c.begin)
	if op.Answer == history.Unknown || op.Answer == history.Refused {
		op.Answer, op.Return = history.Untold, 0
	}
	c.done.add(op)
	c.done.open(task, -1)
}

// calls records what one process of a node asked.
type calls struct {
	done *operations

	mu     sync.Mutex
	number int                       // of the client that goes on
	open   map[int]history.Operation // by the number of the call
}

func newCalls(done *operations) *calls { return &calls{done: done, open: map[int]history.Operation{}} }

// hear takes the word that a call has begun, or ended.
func (c *calls) hear(w *role.Call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if w.Answer == "" {
		if c.number == 0 {
			c.number = c.done.number()
		}
		w.Client = c.number
		c.open[w.Number] = w.Operation
		return
	}
	w.Client = c.open[w.Number].Client
	delete(c.open, w.Number)
	c.settle(w.Operation)
}

// end settles what the process can no longer tell: it was killed.
func (c *calls) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, op := range c.open {
		op.Answer = history.Unknown
		c.settle(op)
	}
	clear(c.open)
}

func (c *calls) settle(op history.Operation) {
	if op.Answer == history.Unknown {
		c.number = 0
	}
	c.done.add(op)
}

// now is the time of the run.
func now(begin int64) int64 { return clock.Now() - begin }
