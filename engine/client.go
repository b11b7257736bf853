package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"golang.org/x/sync/errgroup"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/futures"
	"taskledger/engine/internal/sender"
	"taskledger/engine/internal/stores"
	"taskledger/engine/internal/taskids"
	"taskledger/events"
	"taskledger/projection"
	"taskledger/projection/settings"
	"taskledger/store"
	"taskledger/task"
)

// ClientConfig configures a client: a process that submits, waits and reads, but owns no shard and makes no attempts.
type ClientConfig struct {
	Bus     store.Bus           // required unless Store is given
	Store   store.Store         // without it nothing is accepted while the bus is away, and Ledger, Nodes and Repair do not work
	Archive store.ArchiveReader // holds what was trimmed from the store; nil: that cannot be read
	Shards  int                 // of the cluster; required without Store, otherwise read from it
	Name    string              // recorded as the principal of everything that it asks for; at most 256 bytes; default "client"
	Log     *slog.Logger        // default: slog.Default()
	Now     func() time.Time    // wall clock; must return at once: owners wait for it. It is called with no lock held, by several goroutines; default time.Now
}

// maxForgotten is how many calls of GetForgotten look at once for what is no longer in memory.
const maxForgotten = 4

// Client submits tasks, waits for their outcomes, changes and reads them. Its methods may be called concurrently. Before Run, a call that
// needs an owner waits for Run, or until its ctx ends: ErrUnavailable. While no node is alive it ends within 3 s, with an error that wraps
// task.ErrNoNode, unless task.AwaitNodes makes it wait. A client without a Store cannot know that, and waits; so does a Node, which is
// about to join. Futures go on waiting. Nodes, Repair and much of Ledger read the store, and do not wait.
type Client struct {
	cfg     ClientConfig
	sender  *sender.Sender
	futures *futures.Registry
	ids     *taskids.Source
	running chan struct{}
	ran     atomic.Bool
	local   func() localNode // the node in this process, nil between its sessions; nil in a plain client
	killed  context.Context  // ends when a node is to end as a crash would; never in a plain client

	forgotten chan struct{} // taken by each GetForgotten that looks for what is no longer in memory
	mailLeft  sendersLeft
	items     *stores.Client

	archives bool // the node archives what it trims; a plain client does not know
}

// NewClient returns a client, or an error if the configuration is wrong. It starts nothing: call Run.
func NewClient(cfg ClientConfig) (*Client, error) {
	if cfg.Bus == nil && cfg.Store == nil {
		return nil, &InvalidError{Field: "config", Problem: "neither Bus nor Store"}
	}
	if cfg.Store != nil {
		cfg.Shards = cfg.Store.Cluster().Shards
	}
	if cfg.Shards < 1 || cfg.Shards > store.MaxShards {
		return nil, &InvalidError{Field: "shards", Problem: fmt.Sprintf("%d, want 1 to %d", cfg.Shards, store.MaxShards)}
	}
	if len(cfg.Name) > events.MaxNameBytes {
		return nil, &LimitError{Field: "name", Limit: events.MaxNameBytes, Got: int64(len(cfg.Name))}
	}
	if !utf8.ValidString(cfg.Name) {
		return nil, &InvalidError{Field: "name", Problem: "no UTF-8"}
	}
	cfg.Name = cmp.Or(cfg.Name, "client")
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	c := &Client{cfg: cfg, ids: taskids.New(cfg.Shards), running: make(chan struct{}), forgotten: make(chan struct{}, maxForgotten), killed: context.Background()}
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
		waiting.Journal, waiting.Recall = cfg.Store, c.GetForgotten
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
	return c, nil
}

// localNode is the node in this process, during one session.
type localNode interface {
	// busConnected learns that the bus is there.
	busConnected()
	// plan plans a raw submit with this node's code; false when it does not run the behavior.
	plan(ctx context.Context, c *command.Plan) (a command.Answer, runs bool)
	// unservedSince returns since when a shard is known to have no owner that lives; the zero time: it has one.
	unservedSince(shard int) time.Time
}

// nodeHere returns the node in this process; nil when there is none.
func (c *Client) nodeHere() localNode {
	if c.local == nil {
		return nil
	}
	return c.local()
}

func (c *Client) now() time.Time { return c.cfg.Now() }

// Run serves the client until ctx ends and leaves nothing behind. It may be called once. Calls that are waiting when it ends
// return ErrClosed, or ErrUnknown if their command was sent and not answered.
func (c *Client) Run(ctx context.Context) error {
	return c.run(ctx, func(ctx context.Context) error {
		<-ctx.Done()
		return nil
	})
}

// run serves the client while main runs.
func (c *Client) run(ctx context.Context, main func(context.Context) error) error {
	if c.ran.Swap(true) {
		return fmt.Errorf("the client's Run was called twice: %w", ErrClosed)
	}
	serve, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	g, serve := errgroup.WithContext(serve)
	if c.cfg.Bus != nil {
		if err := c.joinBus(serve); err != nil {
			c.sender.Close()
			c.futures.Close()
			c.items.Close()
			return err
		}
	}
	g.Go(func() error { return c.sender.Run(serve) })
	g.Go(func() error { return c.futures.Run(serve) })
	g.Go(func() error { return c.items.Sweep(serve) })
	close(c.running)
	err := main(ctx)
	stop()
	err = errors.Join(err, g.Wait())
	c.futures.Close()
	c.items.Close()
	c.removeMail(ctx)
	return err
}

func (c *Client) joinBus(ctx context.Context) error {
	if err := c.cfg.Bus.Subscribe(ctx, c.sender.AnswerSubjects(), "", c.sender.OnMessage); err != nil {
		return fmt.Errorf("subscribe to answers: %w", err)
	}
	if err := c.cfg.Bus.Subscribe(ctx, itemSubject(c.sender.ID()), "", c.onItems); err != nil {
		return fmt.Errorf("subscribe to hints: %w", err)
	}
	return c.cfg.Bus.Notify(ctx, func(connected bool) {
		c.sender.BusChanged(connected)
		c.futures.Missed()
		c.items.Again()
		if n := c.nodeHere(); n != nil && connected {
			n.busConnected()
		}
	})
}

// awaitRun waits until Run serves.
func (c *Client) awaitRun(ctx context.Context) error {
	select {
	case <-c.running:
		return nil
	default:
	}
	select {
	case <-c.running:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: the client is not running: %w", ErrUnavailable, context.Cause(ctx))
	}
}

func (c *Client) ask(ctx context.Context, id events.TaskID, lane uint8, cmd command.Command) (command.Answer, error) {
	if err := id.Validate(); err != nil {
		return command.Answer{}, &InvalidError{Field: "id", Problem: err.Error()}
	}
	if err := c.awaitRun(ctx); err != nil {
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
	if err := c.awaitRun(ctx); err != nil {
		return command.Answer{}, err
	}
	return c.sender.Ask(ctx, shard, command.LaneSubmit, cmd)
}

// read is ask for what changes nothing: an unanswered question is no unknown outcome.
func (c *Client) read(ctx context.Context, shard int, cmd command.Command) (command.Answer, error) {
	if err := c.awaitRun(ctx); err != nil {
		return command.Answer{}, err
	}
	a, err := c.sender.Ask(ctx, shard, command.LaneQuery, cmd)
	switch {
	case !errors.Is(err, ErrUnknown):
	case errors.Is(err, task.ErrNoNode):
		err = sender.ErrNoNode
	default:
		err = fmt.Errorf("shard %d does not answer: %w: %w", shard, ErrUnavailable, context.Cause(ctx))
	}
	return a, err
}

// Get returns a task with its parameters and result, which Payload.JSON makes text of, as the owner of its shard has it in memory. It
// may be a moment behind. It returns ErrNotFound also for a task that retention has removed from memory: see GetForgotten.
func (c *Client) Get(ctx context.Context, id events.TaskID) (projection.Task, error) {
	return c.get(ctx, id, false)
}

// GetForgotten is Get, and reads a task that its owner does not know from the journal and the archive. It is then as its last event left
// it, and Forgotten is set. A miss is as expensive: it reads the journal of the shard in etcd and an index of its archive. At most
// four such searches of a client run at a time.
//
// It returns ErrNotFound if there never was such a task or it was deleted, and if it has been forgotten and the client lacks the
// Store or the Archive that holds its events; store.ErrTrimmed if the beginning of its life is no longer held; and ErrUnavailable while it
// cannot be read.
func (c *Client) GetForgotten(ctx context.Context, id events.TaskID) (projection.Task, error) {
	t, err := c.get(ctx, id, false)
	if c.cfg.Store == nil || !errors.Is(err, ErrNotFound) {
		return t, err
	}
	select {
	case c.forgotten <- struct{}{}:
		defer func() { <-c.forgotten }()
	case <-ctx.Done():
		return t, fmt.Errorf("task %s: %w: %w", id, ErrUnavailable, context.Cause(ctx))
	}
	t, err = c.Ledger().StateAt(ctx, id, time.Time{})
	t.Forgotten = t.Final()
	return t, err
}

// GetLinear is Get, and reflects everything that was committed before the call.
func (c *Client) GetLinear(ctx context.Context, id events.TaskID) (projection.Task, error) {
	return c.get(ctx, id, true)
}

func (c *Client) get(ctx context.Context, id events.TaskID, linear bool) (t projection.Task, err error) {
	if err := id.Validate(); err != nil {
		return t, &InvalidError{Field: "id", Problem: err.Error()}
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

// Cancel ends a task. One that waits fails at once, with the code "cancelled"; one that has failed and waits for a
// retry keeps its failure, and is not retried. The context of a running attempt ends, and the task fails with that
// code unless the attempt still succeeds first; nothing starts after it. A finished task with a next run loses that
// run. For a task that has ended for good Cancel returns a *StateError. reason, cut at 256 bytes, is the message of
// the task's failure; of a task that loses a next run, Task.Wait and the history have it.
func (c *Client) Cancel(ctx context.Context, id events.TaskID, reason string) error {
	return c.operate(ctx, id, command.DoCancel, reason)
}

// RunNow makes a task that waits for its time due at once. To wait for the run that this begins, submit the same id before, which joins
// that run, and Wait after; where the task has never started, that submit alone can make it due.
func (c *Client) RunNow(ctx context.Context, id events.TaskID) error {
	return c.operate(ctx, id, command.DoRunNow, "")
}

// Retry gives a task that has ended a new run, due at once, in which failed and lost attempts count from 0. Attach,
// right after it, waits for that run. A task that retention has removed from memory begins a new life instead, with
// its recorded behavior, policy, priority and parameters, and anew is true: to find them costs what GetForgotten
// costs. Retry returns a *StateError if the parameters are no longer kept.
func (c *Client) Retry(ctx context.Context, id events.TaskID) (anew bool, err error) {
	err = c.operate(ctx, id, command.DoRetry, "")
	if c.cfg.Store == nil || !errors.Is(err, ErrNotFound) {
		return false, err
	}
	return c.retryForgotten(ctx, id)
}

// retryForgotten submits what is recorded of a task that its owner does not know. It changes nothing of one that
// somebody makes meanwhile.
func (c *Client) retryForgotten(ctx context.Context, id events.TaskID) (anew bool, err error) {
	t, err := c.GetForgotten(ctx, id)
	if errors.Is(err, store.ErrTrimmed) {
		return false, &StateError{Task: id, Problem: "cannot retry: what was recorded of it, if there was such a task, is no longer kept; submit it again"}
	}
	if errors.Is(err, ErrNotFound) && c.cfg.Archive == nil {
		if first, unread := c.cfg.Store.First(ctx, id.Shard(c.cfg.Shards)); unread == nil && first > 1 {
			err = fmt.Errorf("%w, or nothing of it is kept: this cluster drops what it trims, or its archive is not known here; submit it again", err)
		}
	}
	if err != nil {
		return false, err
	}
	if !t.Forgotten {
		return false, c.operate(ctx, id, command.DoRetry, "") // somebody has made it again since
	}
	again := &command.Submit{Task: id, Behavior: t.Kind.Behavior, Policy: t.Kind.Policy, Priority: t.Priority, Params: t.Params}
	again.Merges = true // with one that is there by now, which is then left as it is
	if err := check(again); err != nil {
		return false, err
	}
	a, err := c.ask(ctx, id, command.LaneSubmit, again)
	if a.Code == command.AnswerMerge || err == nil && a.Joined {
		return false, command.Answer{Code: command.AnswerChanged}.Err(id)
	}
	return err == nil, err
}

// Change is Cancel, RunNow, Retry, Suspend, Resume or Delete of a task as it was seen, in a list say. Once the task has another event, it
// does nothing and returns a *StateError with Changed set.
func (c *Client) Change(ctx context.Context, seen *projection.Task, to task.Operation, reason string) error {
	a, err := c.ask(ctx, seen.ID, command.LaneSubmit, &command.Operate{Task: seen.ID, Do: to, Reason: strings.ToValidUTF8(events.Head(reason, events.MaxNameBytes), ""), Seen: seen.Last})
	for try := 0; (a.Code == command.AnswerMerge || a.Code == command.AnswerChanged && seen.Last == 0) && try < mergeTries; try++ {
		a, err = c.retryWith(ctx, seen)
	}
	return err
}

// retryWith lets the command bring the parameters, as the last run had them.
func (c *Client) retryWith(ctx context.Context, seen *projection.Task) (command.Answer, error) {
	id := seen.ID
	t, err := c.GetLinear(ctx, id)
	if err != nil {
		return command.Answer{}, err
	}
	if seen.Last != 0 && t.Last != seen.Last {
		return command.Answer{}, command.Answer{Code: command.AnswerChanged}.Err(id)
	}
	if t.ParamsElided && t.Params == nil {
		return command.Answer{}, &StateError{Task: id, Problem: "cannot retry: its parameters are no longer kept; delete it and submit it again"}
	}
	return c.ask(ctx, id, command.LaneSubmit, &command.Merge{Life: t.Created, Seq: t.Seq, Operator: true,
		Submit: command.Submit{Task: id, Behavior: t.Kind.Behavior, Policy: t.Kind.Policy, Priority: t.Priority, Params: t.Params}})
}

// Suspend keeps a task from starting until Resume is called; a running attempt goes on. Explain tells the reason.
func (c *Client) Suspend(ctx context.Context, id events.TaskID, reason string) error {
	return c.operate(ctx, id, command.DoSuspend, reason)
}

// Resume ends Suspend.
func (c *Client) Resume(ctx context.Context, id events.TaskID) error {
	return c.operate(ctx, id, command.DoResume, "")
}

// Delete ends the life of a task that is not RUNNING: a later submit of its id makes a new task. Its history stays in the journal,
// and callers that wait for a run that has ended still get its outcome.
func (c *Client) Delete(ctx context.Context, id events.TaskID) error {
	return c.operate(ctx, id, command.DoDelete, "")
}

func (c *Client) operate(ctx context.Context, id events.TaskID, do task.Operation, reason string) error {
	return c.Change(ctx, &projection.Task{ID: id}, do, reason)
}

// Pause keeps the tasks of a behavior, which no node need have, from starting in the whole cluster until Unpause is called; running
// attempts go on. The reason, 256 bytes at most, is for people, and may be empty; that of a behavior that is paused already stays. While
// the shard of the settings is served, every process that owns shards learns of a pause within a second. A session that has just begun
// starts nothing before it knows what is paused.
func (c *Client) Pause(ctx context.Context, behavior, reason string) error {
	return c.pause(ctx, &command.Pause{Behavior: behavior, Paused: true, Reason: reason})
}

// Unpause ends Pause.
func (c *Client) Unpause(ctx context.Context, behavior string) error {
	return c.pause(ctx, &command.Pause{Behavior: behavior})
}

func (c *Client) pause(ctx context.Context, change *command.Pause) error {
	a, err := c.askShard(ctx, events.Settings.Shard(c.cfg.Shards), change)
	if err == nil {
		err = a.Err("")
	}
	if err != nil {
		return fmt.Errorf("settings: %w", err)
	}
	c.sender.Hint(settingsSubject, "", nil)
	return nil
}

// settingsSubject hints that the settings have changed.
const settingsSubject = "settings"

// Settings returns what operators set for the whole cluster, as it is now. It returns ErrUnavailable while its shard is not served.
func (c *Client) Settings(ctx context.Context) (settings.State, error) {
	a, err := c.read(ctx, events.Settings.Shard(c.cfg.Shards), &command.Settings{Linear: true})
	if err == nil {
		err = a.Err("")
	}
	if err != nil {
		return settings.State{}, fmt.Errorf("settings: %w", err)
	}
	return command.DecodeSettings(a.Data)
}

// Nodes returns the nodes that are present, ordered by name. It needs a Store.
func (c *Client) Nodes(ctx context.Context) ([]store.NodeInfo, error) {
	if c.cfg.Store == nil {
		return nil, fmt.Errorf("nodes: %w: the client has no store", ErrUnavailable)
	}
	members, err := c.cfg.Store.ReadMembers(ctx)
	if err != nil {
		return nil, fmt.Errorf("read membership: %w", err)
	}
	var all []store.NodeInfo
	for _, n := range members.Nodes {
		if l, err := command.ReadTold[loadMessage](n.Load); err == nil {
			n.ClockAhead = l.Ahead
		}
		all = append(all, n)
	}
	slices.SortFunc(all, func(a, b store.NodeInfo) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID)) })
	return all, nil
}

// Shards returns what every shard tells of itself. For a shard that has not answered when ctx ends, Problem says so.
func (c *Client) Shards(ctx context.Context) ([]ShardInfo, error) {
	all := make([]ShardInfo, c.cfg.Shards)
	var g errgroup.Group
	for shard := range all {
		g.Go(func() error {
			all[shard] = c.shard(ctx, shard, &command.Info{})
			return nil
		})
	}
	return all, g.Wait()
}

func (c *Client) shard(ctx context.Context, shard int, ask *command.Info) (s ShardInfo) {
	a, err := c.read(ctx, shard, ask)
	var report command.ShardReport
	if err == nil {
		report, err = command.ReadTold[command.ShardReport](a.Data)
	}
	switch s = infoOf(shard, &report); {
	case errors.Is(err, task.ErrNoNode):
		s.Problem = task.ErrNoNode.Error()
	case err != nil && ctx.Err() != nil:
		s.Problem = "nobody answers"
	case err != nil:
		s.Problem = err.Error()
	}
	return s
}
