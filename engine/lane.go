package engine

import (
	"sync"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/events"
)

// lane is what waits of one kind for one shard, and what is under way.
type lane struct {
	mu      sync.Mutex
	number  uint64 // last one used
	left    uint64 // batches of what had waited
	waiting []call
	flight  *flight

	// A refusal that had to be settled took writes, of a store that may have no room: until then new tasks are refused here.
	refusal  command.Answer
	refusing time.Duration // on the monotonic clock

	yielding bool // a sender is about to make a batch of what waits
}

// call is a command and who waits for its answer; nil for nobody.
type call struct {
	command command.Command
	caller  caller
	asker   *events.Asker // behind it; nil = the client itself
	since   time.Duration // on the monotonic clock
	left    uint64        // batches that had left before it came
	awaits  bool          // it waits while no node is alive
}

// size is what the call adds to a batch.
func (c *call) size() int {
	n := c.command.Size()
	if c.asker != nil {
		n += 2 * c.asker.Bytes() // in the batch, and in the entry
	}
	return n
}

// caller waits for the answer to a command. It is told once, from a goroutine that must not be blocked.
type caller interface {
	answered(a command.Answer, err error)
}

// callback is a function as a caller.
type callback func(command.Answer, error)

func (f callback) answered(a command.Answer, err error) { f(a, err) }

// refusesLocked returns why a command of the submit lane takes no place behind those that wait; nil when it does.
func (l *lane) refusesLocked(shard int, c command.Command, now time.Duration) error {
	n := len(l.waiting)
	if n >= maxWaiting || n > fewWaiting && now-l.waiting[0].since > maxWait && l.left > l.waiting[0].left {
		return overloaded(shard)
	}
	switch f := l.flight; {
	case f == nil:
	case f.told != nil && f.told[0].Code == command.AnswerOverload: // as those before, which nothing can settle yet
		return f.told[0].Err("")
	case f.held != nil:
		return f.held.Err("")
	}
	if _, creates := c.(*command.Submit); creates && now < l.refusing {
		return l.refusal.Err("")
	}
	return nil
}

// heldLocked notes that a flight waits for room in the store, and takes out what waits behind it, to fail.
func (l *lane) heldLocked(f *flight, told command.Answer) (behind *flight, why error) {
	told.Code = command.AnswerOverload
	f.held, f.patient = &told, true
	behind = &flight{calls: l.waiting}
	l.waiting = nil
	return behind, told.Err("")
}

// settlesLocked returns the flight that takes f's place when its answers are not to be believed yet; nil when they are.
func (l *lane) settlesLocked(f *flight, answers []command.Answer, recorded bool) *flight {
	if recorded || f.batch.Lane != command.LaneSubmit || f.told != nil || f.copies < 2 {
		return nil
	}
	l.number++
	b := *f.batch
	b.Number, b.Commands, b.Asked = l.number, []command.Command{&command.Barrier{Number: f.batch.Number}}, nil
	next := newFlight(f.shard, &b, f.calls)
	next.began, next.told = f.began, answers
	l.flight = next
	return next
}
