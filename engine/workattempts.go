package engine

import (
	"context"
	"errors"
	"fmt"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/works"
	"taskledger/events"
	"taskledger/projection"
	"taskledger/store"
	"taskledger/task"
	"taskledger/work/workledger"
)

// openWork opens the record of the work of an attempt of the node in this process: it is a workledger.Opener.
func (c *Client) openWork(ctx context.Context, a task.Attempt) (workledger.Access, error) {
	n := c.nodeHere()
	if n == nil {
		return workledger.Access{}, fmt.Errorf("the session of the attempt is over: %w", store.ErrUnavailable)
	}
	attempt := works.Attempt{
		Task:    a.Task,
		Started: a.Token.Ref,
		Node:    n.sessionID(),
	}
	access := workledger.Access{Params: a.Params}
	if of, stream := works.HoldOf(a.Params, a.Task); of != "" {
		params, err := c.workParams(ctx, of)
		if err != nil {
			return workledger.Access{}, err
		}
		access.Hold, access.Partition, access.Params = true, stream, params
	} else if of := works.WorkerOf(a.Params); events.WorkerNumber(of, a.Task) > 1 {
		params, err := c.workParams(ctx, of)
		if errors.Is(err, workledger.ErrWaits) { // nobody will bring them: the run has ended
			err = fmt.Errorf("%w: %w", workledger.ErrGone, err)
		}
		if err != nil {
			return workledger.Access{}, err
		}
		attempt.Parent, access.Worker, access.Params = of, true, params
	}
	asks := works.Asks{
		Ask: func(ctx context.Context, shard int, cmd command.Command) (command.Answer, error) {
			return c.sender.Ask(ctx, shard, command.LaneWork, cmd)
		},
		Read:    c.read,
		Shards:  c.cfg.Shards,
		Leaving: n.leaving,
	}
	access.Ledger = works.NewLedger(asks, attempt)
	access.Stream = works.NewStream(asks, attempt)
	return access, nil
}

// workParams returns the parameters of the task that has a work.
func (c *Client) workParams(ctx context.Context, id events.TaskID) ([]byte, error) {
	t, err := c.get(ctx, id, false)
	if err == nil && t.ParamsElided && t.Params == nil {
		t, err = c.get(ctx, id, true) // which waits where they cannot be read at the moment
	}
	switch {
	case errors.Is(err, task.ErrNotFound):
		return nil, fmt.Errorf("task %s: %w", id, workledger.ErrGone)
	case err != nil:
		return nil, err
	case t.ParamsElided && t.Params == nil:
		return nil, fmt.Errorf("parameters of task %s are not kept: %w", id, workledger.ErrWaits)
	}
	return paramsOf(&t)
}

func paramsOf(t *projection.Task) ([]byte, error) {
	params, err := t.Params.JSON()
	if err != nil {
		return nil, fmt.Errorf("parameters of task %s: %w", t.ID, err)
	}
	return params, nil
}
