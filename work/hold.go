package work

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"taskledger/behaviors"
	"taskledger/work/feed"
	"taskledger/work/internal/threads"
	"taskledger/work/workledger"
)

// hold makes the attempt of the task of a hold of a stream, by its id; "" stands for the full one, which alone has any.
func (w *Work[P, I]) hold(ctx context.Context, id string, of current[P]) error {
	place := slices.IndexFunc(w.partitions, func(p Partition[P, I]) bool {
		return p.flow != nil && (p.ID == id || id == "" && p.Mode == Full)
	})
	if place < 0 {
		return &absentError{w.hash(), fmt.Sprintf("a hold is of stream %q, and the definition of this node has none", id)}
	}
	p := &w.partitions[place]
	if of.record == nil {
		return refuse("stream", "the ledger of the attempt has no record of streams")
	}
	plan := p.plan()
	of.plan, of.place, of.rules = &plan, place, p.Rules
	of.info.Partition, of.info.Bucket = plan.ID, Bucket{Number: 1}
	return p.flow.runHold(ctx, of)
}

// holdRun processes the changes of a hold.
type holdRun[P, C any] struct {
	*flowOf[P, C]
	current[P]
	from feed.Source // once a message had to be fetched again
}

// runHold implements flow.
func (s *flowOf[P, C]) runHold(ctx context.Context, of current[P]) error {
	r := &holdRun[P, C]{
		flowOf:  s,
		current: of,
	}
	defer r.close(ctx)
	for processed := 0; ; {
		changes, err := of.record.Held(ctx, processed)
		if err != nil {
			return ended(ctx, fmt.Errorf("asking for the changes of a hold of stream %s: %w", of.plan.ID, err))
		}
		if len(changes) == 0 {
			return nil
		}
		if processed, err = r.all(ctx, changes); err != nil {
			return ended(ctx, r.stop(ctx, processed, err))
		}
	}
}

// all processes changes until one fails, or it is time to record how many were processed, which it returns.
func (r *holdRun[P, C]) all(ctx context.Context, changes []workledger.HeldChange) (processed int, err error) {
	began := time.Now()
	for i := range changes {
		if i > 0 && time.Since(began) >= moveEvery {
			return i, nil
		}
		if ctx.Err() != nil {
			return i, context.Cause(ctx)
		}
		if err := r.one(ctx, &changes[i]); err != nil {
			return i, err
		}
	}
	return len(changes), nil
}

// stop records what was processed before a change failed.
func (r *holdRun[P, C]) stop(ctx context.Context, processed int, failed error) error {
	if processed == 0 {
		return failed
	}
	ctx, done := lasting(ctx)
	defer done()
	if _, err := r.record.Held(ctx, processed); err != nil {
		return errors.Join(failed, fmt.Errorf("recording %d processed changes of the hold: %w", processed, err))
	}
	return failed
}

func (r *holdRun[P, C]) close(ctx context.Context) {
	if r.from == nil {
		return
	}
	r.closeSource(ctx, r.from)
}

// one processes a change of the hold, or all of a message.
func (r *holdRun[P, C]) one(ctx context.Context, held *workledger.HeldChange) error {
	h, err := decodeHeld(held.Data)
	if err != nil {
		return err
	}
	changes, err := r.changes(ctx, &h)
	for _, c := range changes {
		if err == nil {
			err = r.call(&scope{Context: ctx, info: r.info}, c)
		}
		if _, skips := skipped(err); skips {
			err = nil
		}
	}
	if err == nil {
		return nil
	}
	e := itemError(h.Key, err)
	if d := decide(r.rules, e.Code, MaxRules*MaxRetries+1); d.place >= 0 && (d.React == Ignore || d.React == GoOn) {
		return nil
	}
	return &heldError{
		key: h.Key,
		at:  held.At,
		is:  e,
		err: err,
	}
}

// changes returns what a hold has.
func (r *holdRun[P, C]) changes(ctx context.Context, h *heldChange) ([]Change[C], error) {
	switch {
	case len(h.Value) > 0 && h.Unread == "":
		c := Change[C]{
			Key:   h.Key,
			Token: h.Token,
		}
		if err := json.Unmarshal(h.Value, &c.Value); err != nil {
			return nil, fmt.Errorf("decoding the value of a held change: %w", err)
		}
		return []Change[C]{c}, nil
	case h.Place == 0:
		return nil, behaviors.Code(h.Code, errors.New(cmp.Or(h.Unread, "it could not be read")), nil)
	case r.Convert == nil:
		return nil, errors.New("a message is held, and the stream of this node converts none")
	}
	m, err := r.message(ctx, h)
	if err != nil {
		return nil, fmt.Errorf("message %d: %w", h.Place, err)
	}
	changes, err := r.convert(&scope{Context: ctx, info: r.info}, r.params, m)
	switch {
	case err != nil:
		return nil, err
	case h.Whole:
		return changes, nil
	case h.Index >= len(changes) || changes[h.Index].Key != h.Key:
		return nil, errors.New(
			"change " + strconv.Itoa(h.Index) + " of " + strconv.Itoa(len(changes)) + " is another one now",
		)
	}
	return changes[h.Index : h.Index+1], nil
}

// message returns a held message, from its source if the hold has its place alone.
func (r *holdRun[P, C]) message(ctx context.Context, h *heldChange) (m feed.Message, err error) {
	if h.Message != nil {
		return h.message(), nil
	}
	if r.from == nil {
		if r.from, err = r.openSource(ctx, r.current); err != nil {
			return m, fmt.Errorf("opening the source: %w", err)
		}
	}
	m, err = threads.Await(ctx, r.foreign(), func(ctx context.Context) (feed.Message, error) {
		return r.from.Again(ctx, h.Place)
	})
	if err == nil && !h.Taken.IsZero() && !m.Time.Equal(h.Taken) {
		err = fmt.Errorf("it is another one now, of %s, and was of %s", m.Time.UTC(), h.Taken.UTC())
	}
	return m, err
}
