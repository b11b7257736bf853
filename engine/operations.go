package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"taskledger/bulk"
	"taskledger/engine/internal/command"
	"taskledger/events"
	"taskledger/ledger/repair"
	"taskledger/projection"
	"taskledger/store"
	"taskledger/task"
)

// Operations changes tasks and behaviors as operators ask for it, and reports on the cluster itself.
//
// A method that changes a task returns task.ErrNotFound if there is no such task, a *task.StateError if its state does
// not allow the change, a *store.InvalidError for an id that breaks the rules, store.ErrUnavailable if the command was
// not sent, and task.ErrUnknown if it was sent and not answered.
type Operations struct{ c *Client }

// Operations returns what operators do.
func (c *Client) Operations() Operations { return Operations{c} }

// Cancel ends a task. One that waits fails at once, with the code "cancelled"; one that has failed and waits for a
// retry keeps its failure, and is not retried. The context of a running attempt ends, and the task fails with that
// code unless the attempt still succeeds first; nothing starts after it. A finished task with a next run loses that
// run. For a task that has ended for good Cancel returns a *task.StateError. reason, cut at 256 bytes, is the message
// of the task's failure; of a task that loses a next run, Task.Reason and the history have it.
func (o Operations) Cancel(ctx context.Context, id events.TaskID, reason string) error {
	return o.operate(ctx, id, task.Cancel, reason)
}

// RunNow makes a task that waits for its time due at once. To wait for the run that this begins, submit the same id
// before, which joins that run, and Wait after; where the task has never started, that submit alone can make it due.
func (o Operations) RunNow(ctx context.Context, id events.TaskID) error {
	return o.operate(ctx, id, task.RunNow, "")
}

// Retry gives a task that has ended a new run, due at once, in which failed and lost attempts count from 0. Attach,
// right after it, waits for that run. A task that retention has removed from memory begins a new life instead, with
// its recorded behavior, policy, priority and parameters, and anew is true: to find them costs what
// Client.GetForgotten costs. Retry returns a *task.StateError if the parameters are no longer stored.
func (o Operations) Retry(ctx context.Context, id events.TaskID) (anew bool, err error) {
	return o.RetrySeen(ctx, &task.Task{ID: id})
}

// RetrySeen is Retry of a task that the caller has seen: if the task has had another event since, it changes nothing
// and returns a *task.StateError with Changed set.
func (o Operations) RetrySeen(ctx context.Context, seen *task.Task) (anew bool, err error) {
	err = o.Change(ctx, seen, task.Retry, "")
	if o.c.cfg.Store == nil || !errors.Is(err, task.ErrNotFound) {
		return false, err
	}
	return o.retryForgotten(ctx, seen)
}

// retryForgotten submits what is recorded of a task that its owner does not know. It changes nothing of one that
// somebody makes meanwhile.
func (o Operations) retryForgotten(ctx context.Context, seen *task.Task) (anew bool, err error) {
	c, id := o.c, seen.ID
	t, err := c.getForgotten(ctx, id)
	if errors.Is(err, store.ErrTrimmed) {
		return false, &task.StateError{
			Task: id,
			Problem: "cannot retry: what was recorded of it, if there was such a task, is no longer kept; " +
				"submit it again",
		}
	}
	if errors.Is(err, task.ErrNotFound) && c.cfg.Archive == nil {
		if first, unread := c.cfg.Store.First(ctx, id.Shard(c.cfg.Shards)); unread == nil && first > 1 {
			err = fmt.Errorf("%w, or nothing of it is kept: this cluster drops what it trims, "+
				"or its archive is not known here; submit it again", err)
		}
	}
	if err != nil {
		return false, err
	}
	if !t.Forgotten {
		return false, o.Change(ctx, seen, task.Retry, "") // somebody has made it again since
	}
	if seen.Version.Ref != 0 && t.Last != seen.Version.Ref {
		return false, command.Answer{Code: command.AnswerChanged}.Err(id)
	}
	if t.RunOf() != 0 { // a life that somebody submits would be no run of the schedule
		return false, &task.StateError{
			Task:    id,
			Problem: "cannot retry: the run of a schedule is forgotten; let the schedule run, or backfill its tick",
		}
	}
	again := resubmit(&t)
	again.Merges = true // with one that is there by now, which is then left as it is
	if err := check(&again); err != nil {
		return false, err
	}
	a, err := c.ask(ctx, id, command.LaneSubmit, &again)
	if a.Code == command.AnswerMerge || err == nil && a.Joined {
		return false, command.Answer{Code: command.AnswerChanged}.Err(id)
	}
	return err == nil, err
}

// resubmit returns the submit of a task as it is recorded.
func resubmit(t *projection.Task) command.Submit {
	return command.Submit{
		Task:     t.ID,
		Behavior: t.Kind.Behavior,
		Policy:   t.Kind.Policy,
		Priority: t.Priority,
		Params:   t.Params,
		Tags:     t.Tags(),
	}
}

// Change carries out an operation on a task that the caller has seen, in a list for example. If the task has had
// another event since, it changes nothing and returns a *task.StateError with Changed set. The reason counts for
// task.Cancel and task.Suspend alone.
func (o Operations) Change(ctx context.Context, seen *task.Task, to task.Operation, reason string) error {
	if v := seen.Version; v.Ref != 0 && int(v.Shard) != seen.ID.Shard(o.c.cfg.Shards) { // it is of another task
		return command.Answer{Code: command.AnswerChanged}.Err(seen.ID)
	}
	a, err := o.c.ask(ctx, seen.ID, command.LaneSubmit, &command.Operate{
		Task:   seen.ID,
		Do:     to,
		Reason: strings.ToValidUTF8(events.Head(reason, events.MaxNameBytes), ""),
		Seen:   seen.Version.Ref,
	})
	again := func() bool {
		return a.Code == command.AnswerMerge || a.Code == command.AnswerChanged && seen.Version.Ref == 0
	}
	for try := 0; again() && try < mergeTries; try++ {
		a, err = o.retryWith(ctx, seen)
	}
	return err
}

// retryWith lets the command bring the parameters, as the last run had them.
func (o Operations) retryWith(ctx context.Context, seen *task.Task) (command.Answer, error) {
	id := seen.ID
	t, err := o.c.get(ctx, id, true)
	if err != nil {
		return command.Answer{}, err
	}
	if seen.Version.Ref != 0 && t.Last != seen.Version.Ref {
		return command.Answer{}, command.Answer{Code: command.AnswerChanged}.Err(id)
	}
	if t.ParamsElided && t.Params == nil {
		return command.Answer{}, &task.StateError{
			Task:    id,
			Problem: "cannot retry: its parameters are no longer kept; delete it and submit it again",
		}
	}
	return o.c.ask(ctx, id, command.LaneSubmit, &command.Merge{
		Life:     t.Created,
		Seq:      t.Seq,
		Operator: true,
		Submit:   resubmit(&t),
	})
}

// Each is bulk.Each: it does an operation with every task that a filter selects.
func (o Operations) Each(
	ctx context.Context, f task.Filter, to task.Operation, how bulk.Options,
) iter.Seq2[bulk.Report, error] {
	return bulk.Each(ctx, struct {
		*Client
		Operations
	}{o.c, o}, f, to, how)
}

// Suspend keeps a task from starting until Resume is called; a running attempt goes on. Of a task that has a work the
// contexts of its attempt and of its workers' end: they give their buckets back, and start no others. Client.Explain
// shows the reason.
func (o Operations) Suspend(ctx context.Context, id events.TaskID, reason string) error {
	return o.operate(ctx, id, task.Suspend, reason)
}

// Resume ends Suspend.
func (o Operations) Resume(ctx context.Context, id events.TaskID) error {
	return o.operate(ctx, id, task.Resume, "")
}

// Delete ends the life of a task that is not RUNNING: a later submit of its id makes a new task. Its history stays in
// the journal, and callers that wait for a run that has ended still get its outcome.
func (o Operations) Delete(ctx context.Context, id events.TaskID) error {
	return o.operate(ctx, id, task.Delete, "")
}

func (o Operations) operate(ctx context.Context, id events.TaskID, do task.Operation, reason string) error {
	return o.Change(ctx, &task.Task{ID: id}, do, reason)
}

// Pause keeps the tasks of a behavior from starting in the whole cluster until Unpause is called, whether a node has
// the behavior or not; running attempts go on. The reason, 256 bytes at most, is for people, and may be empty; that
// of a behavior that is paused already stays. While the shard of the settings is served, every process that owns
// shards learns of a pause within a second. A session that has just begun starts nothing before it knows what is
// paused.
//
// Pause returns a *store.InvalidError or a *task.LimitError for a name or a reason that breaks the rules.
func (o Operations) Pause(ctx context.Context, behavior, reason string) error {
	return o.pause(ctx, &command.Pause{Behavior: behavior, Paused: true, Reason: reason})
}

// Unpause ends Pause.
func (o Operations) Unpause(ctx context.Context, behavior string) error {
	return o.pause(ctx, &command.Pause{Behavior: behavior})
}

func (o Operations) pause(ctx context.Context, change *command.Pause) error {
	a, err := o.c.askShard(ctx, events.Settings.Shard(o.c.cfg.Shards), change)
	if err == nil {
		err = a.Err("")
	}
	if err != nil {
		return fmt.Errorf("settings: %w", err)
	}
	o.c.sender.Hint(settingsSubject, "", nil)
	return nil
}

// Settings returns what operators set for the whole cluster, as it is now. It returns store.ErrUnavailable while its
// shard is not served.
func (o Operations) Settings(ctx context.Context) (task.Settings, error) {
	a, err := o.c.read(ctx, events.Settings.Shard(o.c.cfg.Shards), &command.Settings{Linear: true})
	if err == nil {
		err = a.Err("")
	}
	if err != nil {
		return task.Settings{}, fmt.Errorf("settings: %w", err)
	}
	set, err := command.DecodeSettings(a.Data)
	return task.Settings{Paused: set.Pauses()}, err
}

// Nodes returns the nodes that are present, ordered by name. Without a Store it returns store.ErrUnavailable.
func (o Operations) Nodes(ctx context.Context) ([]store.NodeInfo, error) {
	if o.c.cfg.Store == nil {
		return nil, fmt.Errorf("nodes: %w: the client has no store", store.ErrUnavailable)
	}
	members, err := o.c.cfg.Store.ReadMembers(ctx)
	if err != nil {
		return nil, fmt.Errorf("read membership: %w", err)
	}
	var all []store.NodeInfo
	for _, n := range members.Nodes {
		if l, err := command.ReadLenient[loadMessage](n.Load); err == nil {
			n.ClockAhead = l.Ahead
		}
		all = append(all, n)
	}
	slices.SortFunc(all, func(a, b store.NodeInfo) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
	return all, nil
}

// Shards returns the report of every shard's owner. For a shard that has not answered when ctx ends, Problem says so.
func (o Operations) Shards(ctx context.Context) ([]ShardInfo, error) { return o.c.shardInfos(ctx) }

// Repair finds keys of the cluster that are not where they belong, and removes those that can be removed without loss,
// or gives up what a restored store has lost, as how says: see repair.Journals. Without a Store it returns
// store.ErrUnavailable.
func (o Operations) Repair(ctx context.Context, how repair.Options) ([]repair.Stray, error) {
	if o.c.cfg.Store == nil {
		return nil, fmt.Errorf("repair: %w: the client has no store", store.ErrUnavailable)
	}
	return o.c.journals().Repair(ctx, how)
}
