package stores

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/events"
	"taskledger/item"
	"taskledger/task"
)

// Config lets a Client reach owners.
type Config struct {
	// Ask sends a command of command.LaneSubmit and waits for its answer, Read one of command.LaneQuery.
	Ask    func(ctx context.Context, shard int, c command.Command) (command.Answer, error)
	Read   func(ctx context.Context, shard int, c command.Command) (command.Answer, error)
	Shards int
	Sender string // under which owners know this process
	Random func() uint64
	Log    *slog.Logger
}

// Client takes updates and claims of items, and questions about them, to the owners of their stores. Its methods
// may be called concurrently.
type Client struct {
	cfg Config

	mu       sync.Mutex
	queues   map[Group]*queue
	draining chan struct{}
	closed   chan struct{}
	ctx      context.Context // ends with Close
	stop     context.CancelFunc
	calls    sync.WaitGroup
}

// New returns a client. It starts nothing.
func New(cfg Config) *Client {
	c := &Client{
		cfg:      cfg,
		queues:   map[Group]*queue{},
		draining: make(chan struct{}),
		closed:   make(chan struct{}),
	}
	c.ctx, c.stop = context.WithCancel(context.Background())
	return c
}

func (c *Client) shard(store string) int { return Shard(store, c.cfg.Shards) }

// Update applies an update, and returns what it made: what was added, then what was changed.
func (c *Client) Update(ctx context.Context, store string, u *item.Update) ([]item.Item, error) {
	cmd := UpdateOf(store, u)
	if err := command.Check(cmd); err != nil {
		return nil, err
	}
	a, err := c.cfg.Ask(ctx, c.shard(store), cmd)
	if err == nil {
		err = failure(store, u.Key, &a)
	}
	if err != nil {
		return nil, of(store, err)
	}
	return DecodeUpdated(u, a.Data)
}

// Items returns items by their ids, nil for those that are not there.
func (c *Client) Items(ctx context.Context, store string, ids []int64, linear bool) ([]*item.Item, error) {
	all := make([]*item.Item, len(ids))
	for at := 0; at < len(ids); {
		part := ids[at:min(len(ids), at+MaxItems)]
		a, err := c.read(ctx, store, &Read{Store: store, IDs: part, Linear: linear})
		if err != nil {
			return nil, err
		}
		f, err := DecodeFound(a.Data)
		if err != nil {
			return nil, fmt.Errorf("store %s: %w", store, err)
		}
		if f.Scanned < 1 || f.Scanned > len(part) {
			return nil, fmt.Errorf("store %s: answer of %d items to a question for %d", store, f.Scanned, len(part))
		}
		next := 0
		for i, id := range part[:f.Scanned] {
			if next < len(f.Items) && f.Items[next].ID == id {
				all[at+i] = &f.Items[next]
				next++
			}
		}
		at += f.Scanned
	}
	return all, nil
}

// Page returns items of a group by id, as many as one answer holds. more reports that there are others after the
// last one.
func (c *Client) Page(ctx context.Context, store string, p item.Page) (items []item.Item, more bool, err error) {
	for more = true; more && len(items) == 0; { // an owner passes over a bounded number of those that are not available
		a, err := c.read(ctx, store, PageOf(store, p))
		if err != nil {
			return nil, false, err
		}
		f, err := DecodeFound(a.Data)
		if err == nil && f.More && f.Last <= p.After {
			err = errors.New("answer that does not go on")
		}
		if err != nil {
			return nil, false, fmt.Errorf("store %s: %w", store, err)
		}
		items, more, p.After = f.Items, f.More, f.Last
	}
	return items, more, nil
}

// Groups returns the groups that have items, with their counts.
func (c *Client) Groups(ctx context.Context, store string, linear bool) ([]item.Group, error) {
	all := []item.Group{}
	for more, after := true, ""; more; after = all[len(all)-1].Name {
		a, err := c.read(ctx, store, &Groups{Store: store, After: after, Linear: linear})
		if err != nil {
			return nil, err
		}
		var part []item.Group
		part, more, err = DecodeGroups(a.Data)
		if err != nil {
			return nil, fmt.Errorf("store %s: %w", store, err)
		}
		if all = append(all, part...); len(part) == 0 {
			return all, nil
		}
	}
	return slices.Clip(all), nil
}

// read asks a question.
func (c *Client) read(ctx context.Context, store string, q command.Command) (command.Answer, error) {
	if err := command.Check(q); err != nil {
		return command.Answer{}, err
	}
	a, err := c.cfg.Read(ctx, c.shard(store), q)
	if err == nil {
		err = failure(store, "", &a)
	}
	if err != nil {
		return a, fmt.Errorf("store %s: %w", store, err)
	}
	return a, nil
}

// claim sends a claim once. It returns nil when nothing is there.
func (c *Client) claim(ctx context.Context, store string, q *item.Claim) (*item.Item, error) {
	a, err := c.cfg.Ask(ctx, c.shard(store), ClaimOf(store, q, c.cfg.Random()))
	if err == nil {
		err = failure(store, q.Key, &a)
	}
	if err != nil {
		return nil, of(store, err)
	}
	if a.Data == nil {
		return nil, nil
	}
	it, whole, err := DecodeClaimed(q, a.Data)
	if err != nil {
		return nil, fmt.Errorf("store %s: %w", store, err)
	}
	if whole {
		return &it, nil
	}
	found, err := c.Items(ctx, store, []int64{it.ID}, true) // an owner that was replaced may know nothing of the claim
	switch {
	case err != nil: // the item is the caller's, who has to ask again to learn what it is
		return nil, fmt.Errorf("%w: item %d was claimed, and cannot be read: %w", task.ErrUnknown, it.ID, err)
	case found[0] == nil:
		gone := item.Problem{
			Field: "claim",
			ID:    it.ID,
			Kind:  item.NotThere,
			Text:  "was claimed by this request, and is no longer there",
		}
		return nil, &item.ConflictError{Store: store, Problems: []item.Problem{gone}}
	}
	return found[0], nil
}

// of adds the name of the store to an error that lacks it.
func of(store string, err error) error {
	if _, says := errors.AsType[*item.ConflictError](err); says {
		return err
	}
	return fmt.Errorf("store %s: %w", store, err)
}

// failure returns the error of an answer that brings nothing.
func failure(store, key string, a *command.Answer) error {
	switch a.Code {
	case command.AnswerConflict:
		problems, err := DecodeProblems(a.Data)
		if err != nil {
			return err
		}
		return &item.ConflictError{Store: store, Problems: problems}
	case command.AnswerKeyUsed:
		return fmt.Errorf("key %.100q: %w", key, task.ErrOtherRequest)
	case command.AnswerForgotten:
		return fmt.Errorf("key %.100q: %w: %w", key, task.ErrUnknown, item.ErrForgotten)
	case command.AnswerBug:
		return fmt.Errorf("nothing was changed, because of a bug in the shard's owner: %s", a.Text)
	}
	return a.Err(events.TaskID("store:" + store + "/0"))
}

// Close ends every claim that waits with task.ErrClosed, and waits for what is under way.
func (c *Client) Close() {
	c.mu.Lock()
	closeOnce(c.closed)
	c.stop() // under the lock, under which calls that are waited for begin while the context is alive
	c.mu.Unlock()
	c.calls.Wait()
}

// Drain answers every claim that waits as if nothing came, from now on at once.
func (c *Client) Drain() {
	c.mu.Lock()
	defer c.mu.Unlock()
	closeOnce(c.draining)
}

// closeOnce closes a channel, unless it is closed. Its caller holds the lock under which others close it.
func closeOnce(ch chan struct{}) {
	select {
	case <-ch:
	default:
		close(ch)
	}
}

// Sweep lets the claims that wait register again, every second until ctx ends.
func (c *Client) Sweep(ctx context.Context) error {
	ticker := time.NewTicker(sweepEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			c.Again()
		}
	}
}
