package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/goleak"

	"taskledger/engine"
	"taskledger/etcdstore"
	"taskledger/events"
	"taskledger/integration/robustness/history"
	"taskledger/integration/robustness/traffic"
	"taskledger/natsbus"
	"taskledger/store"
)

const (
	// callers bounds the calls that a client makes at a time; each caller thinks between two.
	callers     = 6
	fewCallers  = 3 // where slots are few
	callsThinks = 80 * time.Millisecond
	// watchedFutures is the share of submits, in percent, that keep their future.
	watchedFutures = 25
	// askAgain is the time until one is asked for again whose shard was damaged.
	askAgain = 300 * time.Millisecond
)

// Connection is a client of the engine that runs.
type Connection struct {
	*engine.Client
	Archive store.ArchiveReader // nil: the journals are kept whole
	close   []func() error
}

// connect runs a client of the engine on the links of a role until Close; died hears of an end before that.
func connect(ctx context.Context, r Role, log *slog.Logger, died func(error)) (*Connection, error) {
	c := &Connection{}
	if err := c.open(ctx, r, log); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", r.Name, err), c.Close())
	}
	running, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		err := c.Run(running)
		if running.Err() == nil {
			died(err)
		}
		ended <- err
	}()
	c.close = append(c.close, func() error {
		stop()
		return <-ended
	})
	return c, nil
}

func (c *Connection) open(ctx context.Context, r Role, log *slog.Logger) error {
	ctx, cancel := context.WithTimeout(ctx, openWithin)
	defer cancel()
	store, err := etcdstore.Open(ctx, etcdstore.Config{Endpoints: r.Etcd, Shards: r.Shards, Log: log})
	if err != nil {
		return err
	}
	c.close = append(c.close, store.Close)
	bus, err := natsbus.Open(natsbus.Config{URLs: []string{r.NATS}, Key: store.Cluster().Key, Log: log})
	if err != nil {
		return err
	}
	c.close = append(c.close, bus.Close)
	if r.Archive {
		if c.Archive, err = archiveOf(bus); err != nil {
			return err
		}
	}
	c.Client, err = engine.NewClient(engine.ClientConfig{Store: store, Bus: bus, Archive: c.Archive, Name: r.Name, Log: log})
	return err
}

// Close ends the client in order; calls under way fail. There may be none.
func (c *Connection) Close() (err error) {
	if c == nil {
		return nil
	}
	for i := len(c.close) - 1; i >= 0; i-- {
		err = errors.Join(err, c.close[i]())
	}
	return err
}

// clientInRole is a process that makes requests all the time, and waits for outcomes until it ends.
type clientInRole struct {
	*inRole
	engine *engine.Client
	made   atomic.Int64 // calls, waits among them

	stopSubmit          context.CancelFunc
	submitting, waiting sync.WaitGroup
	begun               int // times that it began to make requests
}

func (p *inRole) client() (err error) {
	c := &clientInRole{inRole: p, stopSubmit: func() {}}
	before := goleak.IgnoreCurrent()
	defer func() { err = errors.Join(err, leaked(before)) }()
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	connection, err := connect(context.Background(), p.Role, log, func(err error) { p.say(Word{Died: fmt.Sprintf("ended by itself: %v", err)}) })
	if err != nil {
		return err
	}
	c.engine = connection.Client
	wait, endWait := context.WithCancel(context.Background())
	defer endWait()
	c.say(Word{Ready: true})
	err = c.obey(func(o Order) (int64, error) { return 0, c.carryOut(wait, o) })
	c.submitOff()
	endWait()
	c.waiting.Wait()
	return errors.Join(err, connection.Close())
}

func (c *clientInRole) carryOut(wait context.Context, o Order) error {
	switch {
	case o.Submit != nil:
		c.submitOff()
		if *o.Submit {
			c.submitOn(wait)
		}
		return nil
	case o.Ask != nil:
		c.call(wait, 0, *o.Ask)
		return nil
	}
	return errors.New("order does not suit the role")
}

// submitOn has callers 1 and up make requests.
func (c *clientInRole) submitOn(wait context.Context) {
	ctx, stop := context.WithCancel(context.Background())
	c.stopSubmit = stop
	c.begun++
	source := fmt.Sprintf("%s/%d", c.Source, c.begun)
	c.submitting.Go(func() { c.keepStores(ctx, c.engine, source, storeClientsOfClient) })
	n := callers
	if c.Few {
		n = fewCallers
	}
	for i := range n {
		c.submitting.Go(func() {
			source := traffic.NewSource(fmt.Sprintf("%s-%c", c.Source, 'a'+i), c.Seed)
			source.Pad, source.Few = c.Pad, c.Few
			for ctx.Err() == nil {
				c.call(wait, i+1, source.Next())
				select {
				case <-ctx.Done():
				case <-time.After(source.Think(callsThinks)):
				}
			}
		})
	}
}

// submitOff returns when no call but waits is under way.
func (c *clientInRole) submitOff() {
	c.stopSubmit()
	c.submitting.Wait()
}

// call makes one request. Waits take long: callers of their own make them, until wait ends. Submits have a key where
// the engine derives the id of the task: a client that is killed does not tell that.
func (c *clientInRole) call(wait context.Context, caller int, r traffic.Request) {
	if r.Verb == history.Wait {
		c.watch(wait, r.Task, "", c.engine.Attach(events.TaskID(r.Task)))
		return
	}
	call := &traffic.Call{Number: int(c.made.Add(1)), Operation: r.Operation(caller, c.Begin)}
	r.Ask(&call.Operation, c.Name, fmt.Sprint(c.Source, "-", call.Number))
	c.say(Word{Call: call})
	ask, cancel := context.WithTimeout(context.Background(), askWithin)
	f := r.Do(ask, c.engine, &call.Operation, c.Begin)
	cancel()
	c.say(Word{Call: call})
	switch {
	case f == nil:
	case call.Answer == history.OK && call.Call%100 < watchedFutures && call.Schedule != nil:
		c.watch(wait, call.Schedule.Run, "", f)
	case call.Answer == history.OK && call.Call%100 < watchedFutures:
		c.watch(wait, call.Task, call.Request, f)
	default:
		f.Close()
	}
}

// damaged reports whether an error tells of a shard that holds what is corrupt.
func damaged(err error) bool {
	return errors.Is(err, store.ErrUnavailable) && strings.Contains(err.Error(), "quarantined")
}

// watch waits for the outcome of a future until ctx ends: who has heard nothing by then is untold. It has told of the
// wait when it returns.
func (c *clientInRole) watch(ctx context.Context, task, request string, f *engine.Future) {
	number := int(c.made.Add(1))
	call := &traffic.Call{Number: number, Operation: traffic.Request{Verb: history.Wait, Task: task}.Operation(callers+number, c.Begin)}
	call.Request = request
	c.say(Word{Call: call})
	c.waiting.Go(func() {
		err := traffic.Wait(ctx, f, &call.Operation)
		for damaged(err) && ctx.Err() == nil { // it was told so at once, and waits for the remedy
			select {
			case <-ctx.Done():
			case <-time.After(askAgain):
			}
			err = traffic.Wait(ctx, c.engine.Attach(events.TaskID(task)), &call.Operation)
		}
		traffic.Settle(&call.Operation, err, c.Begin)
		if call.Answer == history.Unknown || call.Answer == history.Refused {
			call.Answer, call.Return = history.Untold, 0
		}
		c.say(Word{Call: call})
	})
}
