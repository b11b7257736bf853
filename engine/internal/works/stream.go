package works

import (
	"context"
	"fmt"

	"taskledger/engine/internal/command"
	"taskledger/events"
	"taskledger/work/workledger"
)

// moveBytes bounds about what the holds of one command take. A Move with more of them is told by several: the token
// moves by the last one, so what a part holds that is on record alone comes again, and is known.
const moveBytes = events.MaxHeldBytes + 32<<10

// Stream implements workledger.Stream for an attempt by commands to the owner of its shard.
type Stream struct {
	asks    Asks
	attempt Attempt
	shard   int
	from    uint64 // changes of the hold that were processed, as the owner has said
}

// NewStream returns the record of the stream of an attempt. It starts nothing.
func NewStream(asks Asks, a Attempt) *Stream {
	return &Stream{
		asks:    asks,
		attempt: a,
		shard:   a.Task.Shard(asks.Shards),
	}
}

var _ workledger.Stream = (*Stream)(nil)

// Position implements workledger.Stream.
func (s *Stream) Position(ctx context.Context) (workledger.Position, error) {
	is, err := s.read(s.asks.Read(ctx, s.shard, &Position{
		Task:    string(s.attempt.Task),
		Started: uint64(s.attempt.Started),
		Node:    s.attempt.Node,
		Linear:  true,
	}))
	return workledger.Position{
		Token:   string(is.Token),
		Until:   string(is.Until),
		Held:    is.Held,
		Fence:   is.Fence,
		Open:    int64(is.Open),
		Counted: int64(is.Counted),
	}, err
}

// Move implements workledger.Stream. The end of the attempt's context does not end it: an attempt tells at its end how
// far it has come.
func (s *Stream) Move(ctx context.Context, m workledger.Move) (workledger.Moved, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerWithin)
	defer cancel()
	c := &Move{
		Task:    string(s.attempt.Task),
		Started: uint64(s.attempt.Started),
		Node:    s.attempt.Node,
	}
	open := uint64(max(m.Open, 0))
	if !m.Oldest.IsZero() {
		c.Oldest = min(max(m.Oldest.UnixMilli(), 0), int64(events.MaxItemTime)) // the source says so, which may be wrong
	}
	var part []held
	size := 0
	for i := range m.Holds {
		h := heldOf(&m.Holds[i])
		if len(part) > 0 && size+h.size() > moveBytes {
			c.Holds = encodeHolds(part)
			c.Open = max(open, uint64(len(m.Holds)-i)) // those behind the part are open, and m.Open may not count them
			if moved, err := s.move(ctx, c); err != nil || len(moved.Freed) > 0 {
				return moved, err
			}
			part, size = nil, 0
		}
		part, size = append(part, h), size+h.size()
	}
	c.Holds = nil
	if len(part) > 0 {
		c.Holds = encodeHolds(part)
	}
	if m.Token != "" {
		c.Token = []byte(m.Token)
	}
	c.Done, c.Failed, c.Skipped = uint64(m.Items.Done), uint64(m.Items.Failed), uint64(m.Items.Skipped)
	c.Open = open
	if len(m.Errors) > 0 {
		c.Errors = encodeErrors(m.Errors)
	}
	return s.move(ctx, c)
}

func (s *Stream) move(ctx context.Context, c *Move) (m workledger.Moved, err error) {
	is, err := s.read(s.asks.Ask(ctx, s.shard, c))
	for _, key := range is.Freed {
		m.Freed = append(m.Freed, string(key))
		m.Fence = is.Fence
	}
	return m, err
}

// EncodeHolds writes holds as a Move has them.
func EncodeHolds(all []workledger.Hold) []byte {
	holds := make([]held, len(all))
	for i := range all {
		holds[i] = heldOf(&all[i])
	}
	return encodeHolds(holds)
}

func heldOf(h *workledger.Hold) held {
	return held{
		key:     h.Key,
		appends: h.Append,
		parked:  h.Parked,
		passed:  h.Passed,
		at:      h.Change.At,
		data:    h.Change.Data,
		code:    h.Change.Code,
		message: h.Change.Message,
	}
}

// Held implements workledger.Stream. The end of the attempt's context does not end it: what was processed shall not be
// processed again.
func (s *Stream) Held(ctx context.Context, processed int) ([]workledger.HeldChange, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerWithin)
	defer cancel()
	if processed > 0 {
		if _, err := s.read(s.asks.Ask(ctx, s.shard, &Held{
			Task:      string(s.attempt.Task),
			Started:   uint64(s.attempt.Started),
			Node:      s.attempt.Node,
			From:      s.from,
			Processed: uint64(processed),
		})); err != nil {
			return nil, err
		}
	}
	is, err := s.read(s.asks.Read(ctx, s.shard, &Left{
		Task:    string(s.attempt.Task),
		Started: uint64(s.attempt.Started),
		Node:    s.attempt.Node,
		Linear:  true,
	}))
	if err != nil {
		return nil, err
	}
	s.from = is.From
	left, err := decodeChanges(is.Changes)
	if err != nil {
		return nil, fmt.Errorf("reading the changes of the hold: %w", err)
	}
	all := make([]workledger.HeldChange, len(left))
	for i := range left {
		all[i] = workledger.HeldChange{
			At:      left[i].at,
			Data:    left[i].data,
			Code:    left[i].code,
			Message: left[i].message,
		}
	}
	return all, nil
}

// read reads the answer of the owner.
func (s *Stream) read(a command.Answer, err error) (is streamed, _ error) {
	switch {
	case err != nil:
		return is, err
	case a.Code == command.AnswerStale:
		return is, workledger.ErrOver
	case a.Code != command.AnswerOK:
		return is, a.Err(s.attempt.Task)
	}
	return command.ReadLenient[streamed](a.Data)
}
