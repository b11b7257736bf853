package sender

import (
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/events"
)

// Flight is a batch under way. Its exported fields are guarded by its lane, or by the offers where it is one of
// theirs.
type Flight struct {
	Shard        int
	Batch        *command.Batch
	Began        time.Time
	Sent         time.Time // last
	Acknowledged bool      // or posted: it may go longer without an answer
	Queued       time.Time // when it was last passed to an outbox writer

	encoded func() []byte // the batch, once, when it has to leave the process
	calls   []Call
	posting atomic.Bool // it waits for its writer, or is being posted

	// Guarded by the lane.
	inbox       Inbox            // of the owner in this process that has a copy
	copies      int              // that may be decided, by owners that do not know of each other
	direct      bool             // a copy went another way than through the mailbox
	unconfirmed []command.Answer // to the batch that this one, a barrier, is to confirm; nil: this is no barrier
	refusal     *command.Answer  // to whatever comes until this flight is answered; nil: that waits
}

func newFlight(shard int, b *command.Batch, calls []Call) *Flight {
	now := time.Now()
	return &Flight{
		Shard:   shard,
		Batch:   b,
		Began:   now,
		Sent:    now,
		calls:   calls,
		encoded: sync.OnceValue(b.Encode),
	}
}

// NewOffer returns an offer of free slots that was made at a time, under a number of its own.
func (s *Sender) NewOffer(shard int, number uint64, made time.Time, offer *command.Offer) *Flight {
	return newFlight(shard, s.batch(command.LaneOffer, number, made, []command.Command{offer}), nil)
}

// batch returns a batch that is on its way from a time on.
func (s *Sender) batch(laneID uint8, number uint64, made time.Time, commands []command.Command) *command.Batch {
	return &command.Batch{
		Sender:    s.cfg.ID,
		Lane:      laneID,
		Number:    number,
		Made:      events.MillisOf(made),
		Principal: s.cfg.Principal,
		Commands:  commands,
	}
}

// Timeout returns how long the flight may go unanswered before it is sent again.
func (f *Flight) Timeout() time.Duration {
	if f.Acknowledged {
		return resendEvery
	}
	return BusTimeout
}

// Posting reports whether the flight waits for its outbox writer, or is being posted.
func (f *Flight) Posting() bool { return f.posting.Load() }

// awaited reports whether anybody still waits for an answer.
func (f *Flight) awaited() bool {
	return slices.ContainsFunc(f.calls, func(c Call) bool { return c.Waiter != nil })
}

// fail ends the calls of the flight with an error.
func (f *Flight) fail(err error) {
	for _, c := range f.calls {
		if c.Waiter != nil {
			c.Waiter.Answered(command.Answer{}, err)
		}
	}
}

// replySubject names the batch to which an answer belongs, or the notice that nobody listens.
func (s *Sender) replySubject(f *Flight) string {
	b := make([]byte, 0, 64)
	b = append(append(b, "node."...), s.cfg.ID...)
	b = strconv.AppendInt(append(b, '.'), int64(f.Shard), 10)
	b = strconv.AppendUint(append(b, '.'), uint64(f.Batch.Lane), 10)
	return string(strconv.AppendUint(append(b, '.'), f.Batch.Number, 10))
}

// flightOf returns the flight of that number while it is under way.
func (s *Sender) flightOf(shard int, laneID uint8, number uint64) *Flight {
	if laneID == command.LaneOffer {
		if s.offers == nil {
			return nil
		}
		return s.offers.FlightOf(shard, number)
	}
	l := &s.lanes[shard][laneID]
	l.mu.Lock()
	defer l.mu.Unlock()
	if f := l.flight; f != nil && f.Batch.Number == number {
		return f
	}
	return nil
}
