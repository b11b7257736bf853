package sender

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/events"
	"taskledger/task"
)

const (
	// maxQueued bounds the commands that wait in a lane; submits beyond it are refused.
	maxQueued = 50_000
	// maxQueueTime bounds the wait of the first of more than fewQueued commands once a batch has left without it.
	// The owner is there then and does not keep up: a submit behind them would take longer, and a refusal now is
	// better than an answer after its caller has given up. While no batch leaves, say because the owner is
	// replaced, all wait.
	maxQueueTime = time.Second
	fewQueued    = 256
)

// lane holds the commands of one kind that wait for one shard, and the batch that is under way.
type lane struct {
	mu       sync.Mutex
	number   uint64 // of the last batch
	left     uint64 // batches of commands that had waited
	waiting  []Call
	flight   *Flight
	yielding bool // a sender is about to make a batch of what waits

	// A refusal that needed a barrier took writes, of a store that may have no room: until then new tasks are
	// refused here.
	refusal  command.Answer
	refusing time.Duration // on the monotonic clock
}

// Call is a command and the caller that waits for its answer.
type Call struct {
	Command command.Command
	Waiter  Waiter         // nil: nobody waits
	Caller  *events.Caller // on whose behalf it is sent; nil: the client's own
	Awaits  bool           // it waits while no node is alive

	since time.Duration // when it was queued, on the monotonic clock
	left  uint64        // batches that had left its lane by then
}

// size returns the bytes that the call adds to a batch.
func (c *Call) size() int {
	n := c.Command.Size()
	if c.Caller != nil {
		n += 2 * c.Caller.Bytes() // in the batch, and in the entry
	}
	return n
}

// Waiter waits for the answer to a command. Answered is called once, from a goroutine that must not be blocked.
type Waiter interface {
	Answered(a command.Answer, err error)
}

// WaiterFunc is a function as a Waiter.
type WaiterFunc func(command.Answer, error)

// Answered implements Waiter.
func (f WaiterFunc) Answered(a command.Answer, err error) { f(a, err) }

// Send queues a command, and lets it leave. After an error nothing is sent, and its caller has no answer: the
// command is larger than any may be, or the submit lane takes no more.
func (s *Sender) Send(shard int, laneID uint8, c Call) error {
	if err := command.Check(c.Command); err != nil {
		return err
	}
	l := &s.lanes[shard][laneID]
	l.mu.Lock()
	err := l.queueLocked(shard, laneID, c)
	l.mu.Unlock()
	if err == nil {
		s.Flush(shard, laneID)
	}
	return err
}

// Inquire sends a question whose answer may wait for a node for days.
func (s *Sender) Inquire(shard int, question command.Command, answered func(command.Answer, error)) {
	// No question is refused.
	_ = s.Send(shard, command.LaneQuery, Call{Command: question, Waiter: WaiterFunc(answered), Awaits: true})
}

// Later queues what an attempt reports, which leaves with the next command that is sent to the shard, or by Flush.
func (s *Sender) Later(shard int, c command.Command, by Waiter) {
	if err := command.Check(c); err != nil {
		by.Answered(command.Answer{}, err)
		return
	}
	l := &s.lanes[shard][command.LaneWork]
	l.mu.Lock()
	defer l.mu.Unlock()
	_ = l.queueLocked(shard, command.LaneWork, Call{Command: c, Waiter: by}) // only submits are refused
}

// queueLocked queues a command that was checked.
func (l *lane) queueLocked(shard int, laneID uint8, c Call) error {
	now := time.Since(base)
	if laneID == command.LaneSubmit {
		if err := l.refusesLocked(shard, c.Command, now); err != nil {
			return err
		}
	}
	c.since, c.left = now, l.left
	l.waiting = append(l.waiting, c)
	return nil
}

// refusesLocked returns why a command of the submit lane may not wait behind those that do; nil when it may.
func (l *lane) refusesLocked(shard int, c command.Command, now time.Duration) error {
	n := len(l.waiting)
	if n >= maxQueued || n > fewQueued && now-l.waiting[0].since > maxQueueTime && l.left > l.waiting[0].left {
		why := fmt.Sprintf("too many commands wait for shard %d", shard)
		return &task.OverloadError{Cause: why, RetryAfter: time.Second}
	}
	switch f := l.flight; {
	case f == nil:
	case f.unconfirmed != nil && f.unconfirmed[0].Code == command.AnswerOverload: // no barrier can confirm it yet
		return f.unconfirmed[0].Err("")
	case f.refusal != nil:
		return f.refusal.Err("")
	}
	if _, creates := c.(*command.Submit); creates && now < l.refusing {
		return l.refusal.Err("")
	}
	return nil
}

// Withdraw takes back a command that has not been sent; false when it has.
func (s *Sender) Withdraw(shard int, laneID uint8, c command.Command) bool {
	l := &s.lanes[shard][laneID]
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.IndexFunc(l.waiting, func(w Call) bool { return w.Command == c })
	if i < 0 {
		return false
	}
	copy(l.waiting[1:i+1], l.waiting[:i]) // those that give up are mostly the first
	l.waiting[0] = Call{}
	l.waiting = l.waiting[1:]
	return true
}

// Flush lets what waits in a lane leave, unless a batch is under way.
func (s *Sender) Flush(shard int, laneID uint8) {
	if in := s.inboxHere(shard, laneID); in != nil {
		in.Wake()
		return
	}
	l := &s.lanes[shard][laneID]
	l.mu.Lock()
	if l.flight != nil || l.yielding {
		l.mu.Unlock()
		return
	}
	l.yielding = true
	l.mu.Unlock()
	if laneID == command.LaneSubmit || laneID == command.LaneWork {
		s.yield.Yield() // the first command of a batch lets whoever is ready to run add to it
	}
	s.leave(shard, laneID)
}

// leave makes a batch of what waits in a lane, if none is under way, and sends it, unless no node may be alive.
func (s *Sender) leave(shard int, laneID uint8) {
	needsNode := laneID == command.LaneSubmit || laneID == command.LaneQuery
	made, waits := s.cfg.Now(), needsNode && s.liveness.Doubtful()
	var f *Flight
	l := &s.lanes[shard][laneID]
	l.mu.Lock()
	l.yielding = false
	if !waits {
		f = s.nextFlight(l, shard, laneID, made)
	}
	l.mu.Unlock()
	if f != nil {
		s.Dispatch(f)
	}
}

// nextFlight makes a batch of what waits, if none is under way. Its time is read before the lane is locked.
func (s *Sender) nextFlight(l *lane, shard int, laneID uint8, made time.Time) *Flight {
	if l.flight != nil || len(l.waiting) == 0 || s.Closed() {
		return nil
	}
	n, size := 0, 0
	for n < len(l.waiting) && n < command.MaxBatchCommands && size < command.MaxBatchBytes {
		size += l.waiting[n].size()
		n++
	}
	l.number++
	l.left++
	f := newFlight(shard, s.batch(laneID, l.number, made, make([]command.Command, 0, n)), l.waiting[:n:n])
	for i := range f.calls {
		c := &f.calls[i]
		if aging, ages := c.Command.(command.Aging); ages {
			aging.Waited(time.Since(base) - c.since)
		}
		f.Batch.Add(c.Command, c.Caller)
	}
	l.waiting = l.waiting[n:]
	l.flight = f
	return f
}
