package engine

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"taskledger/events"
	"taskledger/projection"
)

// History yields the events of the present life of a task, in order, from the journal. It needs a Store; ErrNotFound.
func (c *Client) History(ctx context.Context, id events.TaskID) iter.Seq2[events.Event, error] {
	return func(yield func(events.Event, error) bool) {
		all, err := c.history(ctx, id)
		for _, ev := range all {
			if !yield(ev, nil) {
				return
			}
		}
		if err != nil {
			yield(events.Event{}, err)
		}
	}
}

// history follows the links from the last event back to Created.
func (c *Client) history(ctx context.Context, id events.TaskID) (all []events.Event, err error) {
	if c.cfg.Store == nil {
		return nil, fmt.Errorf("history: %w: the client has no store", ErrUnavailable)
	}
	t, err := c.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	shard := id.Shard(c.cfg.Shards)
	var entry *events.Entry
	for ref := t.Last; ref != 0; ref = all[len(all)-1].Prev {
		if entry == nil || entry.Number != ref.Entry() {
			rec, err := c.cfg.Store.Entry(ctx, shard, ref.Entry())
			if err == nil {
				entry, err = events.Decode(rec.Data)
			}
			if err != nil {
				return nil, fmt.Errorf("history of %s: %w", id, err)
			}
		}
		if ref.Index() >= len(entry.Events) || entry.Events[ref.Index()].Task != id {
			return nil, fmt.Errorf("history of %s: %w: position %s is not its event", id, events.ErrDamaged,
				events.Position{Shard: uint16(shard), Ref: ref})
		}
		all = append(all, entry.Events[ref.Index()])
	}
	slices.Reverse(all)
	return all, nil
}

// Verification is what Verify found out about a shard.
type Verification struct {
	Shard    int         `json:"shard"`
	Entries  uint64      `json:"entries"` // that were read and applied
	Events   uint64      `json:"events"`
	Tasks    int         `json:"tasks"`
	Hash     events.Hash `json:"hash"`
	Compared bool        `json:"compared"`          // the owner answered, and its state was compared with the fold
	Problem  string      `json:"problem,omitempty"` // the damage; "" = none
}

// Verify reads the whole journal, shard by shard, and checks that it has no gaps, that every entry continues the hash
// chain, that every transition is legal, and that the owner's state equals the fold. progress, if not nil, is told of
// every entry. A problem is part of the result, not an error; errors mean that the check could not be made.
func (c *Client) Verify(ctx context.Context, progress func(shard int, entry uint64)) ([]Verification, error) {
	if c.cfg.Store == nil {
		return nil, fmt.Errorf("verify: %w: the client has no store", ErrUnavailable)
	}
	ask, cancel := context.WithTimeout(ctx, askOwnersFor)
	served, err := c.shards(ask, true)
	cancel()
	if err != nil {
		return nil, err
	}
	var all []Verification
	for shard := range c.cfg.Shards {
		v, err := c.verifyShard(ctx, &served[shard], progress)
		if err != nil {
			return all, err
		}
		all = append(all, v)
	}
	return all, nil
}

// askOwnersFor is how long a question waits for an owner where it can be answered without one.
const askOwnersFor = 3 * time.Second

func (c *Client) verifyShard(ctx context.Context, served *ShardInfo, progress func(int, uint64)) (v Verification, err error) {
	shard := served.Shard
	v.Shard = shard
	state := projection.NewShard(shard)
	compare := func() {
		if served.Problem == "" && served.Entries == state.Number {
			v.Compared = true
			if served.Hash != state.Hash || served.Digest != stateDigest(state) {
				v.Problem = fmt.Sprintf("entry %d: the owner's state differs from the fold of the journal", state.Number)
			}
		}
	}
	compare()
	for rec, err := range c.cfg.Store.Read(ctx, shard, 1) {
		if errors.Is(err, ErrTrimmed) {
			v.Problem = err.Error()
			return v, nil
		}
		if err != nil {
			return v, fmt.Errorf("verify shard %d: %w", shard, err)
		}
		n, problem := replayOne(state, rec)
		if problem != "" {
			v.Problem = problem
			return v, nil
		}
		v.Events += uint64(n)
		v.Entries, v.Hash = state.Number, state.Hash
		v.Tasks = state.Len()
		compare()
		if progress != nil {
			progress(shard, state.Number)
		}
	}
	return v, nil
}

func replayOne(state *projection.Shard, rec Record) (count int, problem string) {
	e, err := events.Decode(rec.Data)
	if err == nil && e.Number != rec.Number {
		err = fmt.Errorf("%w: entry %d is stored as entry %d", events.ErrDamaged, e.Number, rec.Number)
	}
	if err == nil {
		err = state.Replay(e)
	}
	if err != nil {
		return 0, fmt.Sprintf("entry %d: %v", rec.Number, err)
	}
	return len(e.Events), ""
}
