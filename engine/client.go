package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"golang.org/x/sync/errgroup"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/futures"
	"taskledger/engine/internal/schedules"
	"taskledger/engine/internal/sender"
	"taskledger/engine/internal/stores"
	"taskledger/engine/internal/taskids"
	"taskledger/events"
	"taskledger/ledger"
	"taskledger/projection"
	"taskledger/projection/taskview"
	"taskledger/store"
	"taskledger/task"
	"taskledger/tasklog"
)

// ClientConfig configures a client: a process that submits, waits and reads, but owns no shard and makes no attempts.
type ClientConfig struct {
	Bus store.Bus // required unless Store is set

	// Store may be nil. Then nothing is accepted while the bus is away, and Ledger, Operations.Nodes and
	// Operations.Repair do not work.
	Store store.Store

	Archive store.ArchiveReader // holds entries that were trimmed from the store; nil: they cannot be read
	Logs    tasklog.Reader      // holds what tasks have written; nil: it cannot be read. Repair needs a tasklog.Store
	Shards  int                 // of the cluster; required without Store, where Run checks it, else read from that
	Name    string              // recorded as the principal of its commands; at most 256 bytes; default "client"
	Log     *slog.Logger        // default: slog.Default()

	// Now is the wall clock; default time.Now. It must return at once, since owners wait for it. Several goroutines
	// call it, with no lock held.
	Now func() time.Time
}

// maxForgotten bounds the concurrent searches of GetForgotten for tasks that are no longer in memory.
const maxForgotten = 4

// Client submits tasks, waits for their outcomes and reads them; Operations, Schedules, Stores and Ledger do the rest.
// Its methods may be called concurrently. Before Run, a call that needs an owner waits for Run, or until its ctx ends:
// store.ErrUnavailable. While no node is alive it ends within 3 s, with an error that wraps task.ErrNoNode, unless
// task.AwaitNodes makes it wait. A client without a Store cannot know that, and waits; so does a Node, which is about
// to join. Futures go on waiting. Operations.Nodes, Operations.Repair and much of Ledger read the store, and do not
// wait.
type Client struct {
	cfg     ClientConfig
	sender  *sender.Sender
	futures *futures.Registry
	ids     *taskids.Source
	gate    *gate
	ran     atomic.Bool
	local   func() localNode // the node in this process, nil between its sessions; nil in a plain client
	killed  context.Context  // ends when a node is to end as a crash would; never in a plain client

	forgotten   chan struct{} // taken by each GetForgotten that searches for a task that is no longer in memory
	sendersLeft sendersLeft
	items       *stores.Client
	schedules   *schedules.Client

	extensions clientExtensions

	loggedTasks loggedTasks
	milestones  ledger.Milestones // of lives whose states were asked for

	archives bool // the node archives what it trims; a plain client does not know
}

// NewClient returns a client, or an error if the configuration is wrong. It starts nothing: call Run.
func NewClient(cfg ClientConfig) (*Client, error) {
	if cfg.Bus == nil && cfg.Store == nil {
		return nil, &store.InvalidError{Field: "config", Problem: "neither Bus nor Store"}
	}
	if cfg.Store != nil {
		cfg.Shards = cfg.Store.Cluster().Shards
	}
	if cfg.Shards < 1 || cfg.Shards > store.MaxShards {
		problem := fmt.Sprintf("%d, want 1 to %d", cfg.Shards, store.MaxShards)
		return nil, &store.InvalidError{Field: "shards", Problem: problem}
	}
	if len(cfg.Name) > events.MaxNameBytes {
		return nil, &task.LimitError{Field: "name", Limit: events.MaxNameBytes, Got: int64(len(cfg.Name))}
	}
	if !utf8.ValidString(cfg.Name) {
		return nil, &store.InvalidError{Field: "name", Problem: "no UTF-8"}
	}
	cfg.Name = cmp.Or(cfg.Name, "client")
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	c := &Client{
		cfg:       cfg,
		ids:       taskids.New(cfg.Shards),
		gate:      newGate(),
		forgotten: make(chan struct{}, maxForgotten),
		killed:    context.Background(),
	}
	sending := sender.Config{
		ID:        randomID(),
		Principal: cfg.Name,
		Shards:    cfg.Shards,
		Bus:       cfg.Bus,
		Now:       cfg.Now,
		Log:       cfg.Log,
	}
	waiting := futures.Config{Shards: cfg.Shards, Bus: cfg.Bus, Log: cfg.Log}
	if cfg.Store != nil {
		sending.Mailbox, sending.Members = cfg.Store, cfg.Store
		waiting.Journal, waiting.Recall = cfg.Store, c.getForgotten
	}
	c.sender = sender.New(sending)
	waiting.Sender = c.sender
	c.futures = futures.New(waiting)
	c.items = stores.New(stores.Config{
		Ask:    c.askShard,
		Read:   c.read,
		Shards: cfg.Shards,
		Sender: c.sender.ID(),
		Random: rand.Uint64,
		Log:    cfg.Log,
	})
	c.schedules = schedules.New(schedules.Config{
		Ask:    c.askShard,
		Read:   c.read,
		Shards: cfg.Shards,
		Now:    cfg.Now,
	})
	c.extensions = clientExtensionsOf(c.items)
	return c, nil
}

// localNode is the node in this process, during one session.
type localNode interface {
	// busConnected learns that the bus is there.
	busConnected()
	// plan plans a raw submit with this node's code; false when it does not run the behavior.
	plan(ctx context.Context, c *command.Plan) (a command.Answer, runs bool)
	// unservedSince returns since when a shard is known to have no live owner; the zero time: it has one.
	unservedSince(shard int) time.Time
	// sessionID returns the id of the session.
	sessionID() string
	// leaving reports that the node drains.
	leaving() bool
}

// nodeHere returns the node in this process; nil when there is none.
func (c *Client) nodeHere() localNode {
	if c.local == nil {
		return nil
	}
	return c.local()
}

func (c *Client) now() time.Time { return c.cfg.Now() }

// Run serves the client until ctx ends and leaves nothing behind. It may be called once. Calls that wait when it ends
// return task.ErrClosed, or task.ErrUnknown if their command was sent and not answered.
//
// Without a Store it ends with a *store.InvalidError of the field "shards" when it learns from an owner that the
// cluster has another number of shards, and so does every call from then on.
func (c *Client) Run(ctx context.Context) error {
	return c.run(ctx, func(ctx context.Context) error {
		if c.cfg.Store == nil {
			if err := c.checkShards(ctx); err != nil {
				return err
			}
		}
		<-ctx.Done()
		return nil
	})
}

// run serves the client while main runs.
func (c *Client) run(ctx context.Context, main func(context.Context) error) error {
	if c.ran.Swap(true) {
		return fmt.Errorf("the client's Run was called twice: %w", task.ErrClosed)
	}
	serve, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(nil)
	g, serve := errgroup.WithContext(serve)
	if c.cfg.Bus != nil {
		if err := c.joinBus(serve); err != nil {
			c.sender.Close()
			c.futures.Close()
			c.extensions.close()
			return err
		}
	}
	g.Go(func() error { return c.sender.Run(serve) })
	g.Go(func() error { return c.futures.Run(serve) })
	c.extensions.run(serve, g)
	if c.cfg.Store != nil {
		c.gate.open()
	}
	err := main(ctx)
	closed := task.ErrClosed
	if errors.Is(err, store.ErrBroken) {
		closed = fmt.Errorf("%w: %w", closed, err)
	}
	stop(closed)
	err = errors.Join(err, g.Wait())
	c.futures.CloseFor(closed)
	c.extensions.close()
	c.removeMailboxes(ctx)
	return err
}

func (c *Client) joinBus(ctx context.Context) error {
	if err := c.cfg.Bus.Subscribe(ctx, c.sender.AnswerSubjects(), "", c.sender.OnMessage); err != nil {
		return fmt.Errorf("subscribe to answers: %w", err)
	}
	if err := c.extensions.subscribe(ctx, c.cfg.Bus, c.sender.ID(), c.cfg.Log); err != nil {
		return err
	}
	return c.cfg.Bus.Notify(ctx, func(connected bool) {
		c.sender.BusChanged(connected)
		c.futures.Missed()
		c.extensions.again()
		if n := c.nodeHere(); n != nil && connected {
			n.busConnected()
		}
	})
}

func (c *Client) ask(ctx context.Context, id events.TaskID, lane uint8, cmd command.Command) (command.Answer, error) {
	if err := id.Validate(); err != nil {
		return command.Answer{}, &store.InvalidError{Field: "id", Problem: err.Error()}
	}
	if err := c.gate.pass(ctx); err != nil {
		return command.Answer{}, err
	}
	a, err := c.sender.Ask(ctx, id.Shard(c.cfg.Shards), lane, cmd)
	if err != nil {
		return command.Answer{}, fmt.Errorf("task %s: %w", id, err)
	}
	return a, a.Err(id)
}

// askShard is ask for what is no task.
func (c *Client) askShard(ctx context.Context, shard int, cmd command.Command) (command.Answer, error) {
	if err := c.gate.pass(ctx); err != nil {
		return command.Answer{}, err
	}
	return c.sender.Ask(ctx, shard, command.LaneSubmit, cmd)
}

// read is ask for what changes nothing: an unanswered question is no unknown outcome.
func (c *Client) read(ctx context.Context, shard int, cmd command.Command) (command.Answer, error) {
	if err := c.gate.pass(ctx); err != nil {
		return command.Answer{}, err
	}
	a, err := c.sender.Ask(ctx, shard, command.LaneQuery, cmd)
	switch {
	case !errors.Is(err, task.ErrUnknown):
	case errors.Is(err, task.ErrNoNode):
		err = sender.ErrNoNode
	default:
		err = fmt.Errorf("shard %d does not answer: %w: %w", shard, store.ErrUnavailable, context.Cause(ctx))
	}
	return a, err
}

// Get returns a task with its parameters and result, as the owner of its shard has it in memory. It may be a moment
// behind. It returns task.ErrNotFound also for a task that retention has removed from memory: see GetForgotten. For
// an id that breaks the rules it returns a *store.InvalidError, and store.ErrUnavailable where no owner answers.
func (c *Client) Get(ctx context.Context, id events.TaskID) (task.Task, error) {
	return c.view(c.get(ctx, id, false))
}

// GetForgotten is Get, and reads a task that its owner does not know from the journal and the archive. It is then as
// its last event left it, and Forgotten is set. A miss is as expensive: it reads the journal of the shard in etcd and
// an index of its archive. At most four such searches of a client run at a time.
//
// It returns task.ErrNotFound if there never was such a task or it was deleted, and if it has been forgotten and the
// client lacks the Store or the Archive that holds its events; store.ErrTrimmed if the beginning of its life is no
// longer held; and store.ErrUnavailable while it cannot be read.
func (c *Client) GetForgotten(ctx context.Context, id events.TaskID) (task.Task, error) {
	return c.view(c.getForgotten(ctx, id))
}

// GetLinear is Get, and reflects everything that was committed before the call.
func (c *Client) GetLinear(ctx context.Context, id events.TaskID) (task.Task, error) {
	return c.view(c.get(ctx, id, true))
}

// view returns a task as it is now for the caller, or the error.
func (c *Client) view(t projection.Task, err error) (task.Task, error) {
	if err != nil {
		return task.Task{}, err
	}
	return taskview.Of(&t, c.cfg.Shards, events.MillisOf(c.now())), nil
}

func (c *Client) getForgotten(ctx context.Context, id events.TaskID) (projection.Task, error) {
	t, err := c.get(ctx, id, false)
	if c.cfg.Store == nil || !errors.Is(err, task.ErrNotFound) {
		return t, err
	}
	return c.search(ctx, id)
}

// search reads a task that its owner does not know from the journal and the archive.
func (c *Client) search(ctx context.Context, id events.TaskID) (t projection.Task, err error) {
	select {
	case c.forgotten <- struct{}{}:
		defer func() { <-c.forgotten }()
	case <-ctx.Done():
		return t, fmt.Errorf("task %s: %w: %w", id, store.ErrUnavailable, context.Cause(ctx))
	}
	t, err = c.Ledger().FoldAt(ctx, id, time.Time{})
	t.Forgotten = t.Final()
	return t, err
}

func (c *Client) get(ctx context.Context, id events.TaskID, linear bool) (t projection.Task, err error) {
	if err := id.Validate(); err != nil {
		return t, &store.InvalidError{Field: "id", Problem: err.Error()}
	}
	a, err := c.read(ctx, id.Shard(c.cfg.Shards), &command.Get{Task: id, Linear: linear})
	if err == nil {
		err = a.Err(id)
	}
	if err != nil {
		return t, err
	}
	t, err = command.DecodeTask(a.Data)
	t.Sight(events.Millis(a.Number))
	return t, err
}
