package engine

import (
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"taskledger/engine/internal/command"
)

// flight is a batch under way.
type flight struct {
	shard   int
	batch   *command.Batch
	bytes   func() []byte // the batch encoded, once, when it has to leave the process
	calls   []call
	began   time.Time
	sent    time.Time        // last
	copies  int              // that may be decided, by owners that do not know of each other; guarded by the lane
	direct  bool             // a copy went another way than as a letter; guarded by the lane
	in      *inbox           // of an owner in this process that has one
	told    []command.Answer // of a flight that settles another: what was answered to that one
	held    *command.Answer  // what those are told that come until this flight is answered; nil = they wait
	patient bool             // acknowledged, or posted: wait longer before the next try

	posting atomic.Bool // it waits for its postman, or is being posted
	handed  time.Time   // when the postman was given it last
}

func newFlight(shard int, b *command.Batch, calls []call) *flight {
	now := time.Now()
	return &flight{shard: shard, batch: b, calls: calls, began: now, sent: now, bytes: sync.OnceValue(b.Encode)}
}

func (f *flight) patience() time.Duration {
	if f.patient {
		return resendEvery
	}
	return busPatience
}

// awaited reports whether anybody still waits for an answer.
func (f *flight) awaited() bool {
	return slices.ContainsFunc(f.calls, func(c call) bool { return c.caller != nil })
}

func (f *flight) fail(err error) {
	for _, c := range f.calls {
		if c.caller != nil {
			c.caller.answered(command.Answer{}, err)
		}
	}
}

// replySubject tells of which batch an answer, or the news that nobody listens, is.
func (r *router) replySubject(f *flight) string {
	b := make([]byte, 0, 64)
	b = append(append(b, "node."...), r.sender...)
	b = strconv.AppendInt(append(b, '.'), int64(f.shard), 10)
	b = strconv.AppendUint(append(b, '.'), uint64(f.batch.Lane), 10)
	return string(strconv.AppendUint(append(b, '.'), f.batch.Number, 10))
}

// flightOf returns the flight of that number while it is under way.
func (r *router) flightOf(shard int, laneID uint8, number uint64) *flight {
	if laneID == command.LaneOffer {
		if r.offers == nil {
			return nil
		}
		return r.offers.flightOf(shard, number)
	}
	l := &r.lanes[shard][laneID]
	l.mu.Lock()
	defer l.mu.Unlock()
	if f := l.flight; f != nil && f.batch.Number == number {
		return f
	}
	return nil
}
