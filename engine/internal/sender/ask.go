package sender

import (
	"context"
	"fmt"
	"sync"

	"taskledger/engine/internal/command"
	"taskledger/events"
	"taskledger/store"
	"taskledger/task"
)

// Reply holds the answer to a command, or the reason why there is none.
type Reply struct {
	Answer command.Answer
	Err    error
}

// waiter is the caller of Ask. It waits for one answer at a time.
type waiter struct{ got chan Reply }

func newWaiter() any { return &waiter{make(chan Reply, 1)} }

// Answered implements Waiter.
func (w *waiter) Answered(a command.Answer, err error) { w.got <- Reply{a, err} }

// Ask sends a command and waits for its answer. When ctx ends before it was sent nothing was accepted, and the error
// wraps store.ErrUnavailable; after that it wraps task.ErrUnknown. So it is when no node is alive for a while.
func (s *Sender) Ask(ctx context.Context, shard int, laneID uint8, c command.Command) (command.Answer, error) {
	by, err := CallerOf(ctx)
	if err != nil {
		return command.Answer{}, err
	}
	w := s.waiters.Get().(*waiter)
	call := Call{
		Command: c,
		Waiter:  w,
		Caller:  by,
		Awaits:  task.AwaitsNodes(ctx),
	}
	if err := s.Send(shard, laneID, call); err != nil {
		return command.Answer{}, err
	}
	if s.Closed() && s.Withdraw(shard, laneID, c) { // whoever fails those that wait may have been here before
		return command.Answer{}, *s.closed.Load()
	}
	select {
	case r := <-w.got:
		s.waiters.Put(w)
		return r.Answer, r.Err
	case <-ctx.Done():
		return command.Answer{}, s.gaveUp(ctx, !s.Withdraw(shard, laneID, c))
	}
}

// gaveUp returns the error of a caller whose context has ended.
func (s *Sender) gaveUp(ctx context.Context, sent bool) error {
	why := store.ErrUnavailable
	if sent {
		why = errUnknown
	}
	return fmt.Errorf("%w: %w", why, s.liveness.Why(ctx))
}

// Submission is a command of the submit lane, and the shard that it is for.
type Submission struct {
	Shard   int
	Command command.Command
}

// AskMany is Ask for many commands of the submit lane at once. Commands for one shard wait together, in their
// order: no batch leaves between them. It returns a reply for each when the last of them is known.
func (s *Sender) AskMany(ctx context.Context, of []Submission) []Reply {
	m := &many{replies: make([]Reply, len(of)), left: len(of), done: make(chan struct{})}
	by, err := CallerOf(ctx)
	if err != nil || len(of) == 0 {
		for i := range m.replies {
			m.replies[i].Err = err
		}
		return m.replies
	}
	m.answered = make([]bool, len(of))
	shards := make([][]int, len(s.lanes))
	for i := range of {
		shards[of[i].Shard] = append(shards[of[i].Shard], i)
	}
	awaits := task.AwaitsNodes(ctx)
	for shard, indices := range shards {
		m.queue(s, shard, indices, of, by, awaits)
	}
	for shard, indices := range shards {
		if len(indices) > 0 {
			s.Flush(shard, command.LaneSubmit)
		}
	}
	if s.Closed() { // as in Ask
		for i := range of {
			if m.waits(i) && s.Withdraw(of[i].Shard, command.LaneSubmit, of[i].Command) {
				m.answer(i, command.Answer{}, *s.closed.Load())
			}
		}
	}
	select {
	case <-m.done:
	case <-ctx.Done():
		for i := range of {
			if m.waits(i) {
				sent := !s.Withdraw(of[i].Shard, command.LaneSubmit, of[i].Command)
				m.answer(i, command.Answer{}, s.gaveUp(ctx, sent))
			}
		}
	}
	return m.replies
}

// many holds the replies of one AskMany.
type many struct {
	mu       sync.Mutex
	replies  []Reply
	answered []bool
	left     int           // that are not answered
	done     chan struct{} // closed when none is left
}

// one is the caller of one command of many.
type one struct {
	of *many
	i  int
}

// Answered implements Waiter.
func (o *one) Answered(a command.Answer, err error) { o.of.answer(o.i, a, err) }

// queue lets commands for one shard wait for the next batch, all under one lock.
func (m *many) queue(s *Sender, shard int, indices []int, of []Submission, by *events.Caller, awaits bool) {
	if len(indices) == 0 {
		return
	}
	callers := make([]one, len(indices))
	l := &s.lanes[shard][command.LaneSubmit]
	l.mu.Lock()
	defer l.mu.Unlock()
	for at, i := range indices {
		callers[at] = one{m, i}
		err := command.Check(of[i].Command)
		if err == nil {
			err = l.queueLocked(shard, command.LaneSubmit, Call{
				Command: of[i].Command,
				Waiter:  &callers[at],
				Caller:  by,
				Awaits:  awaits,
			})
		}
		if err != nil {
			m.answer(i, command.Answer{}, err)
		}
	}
}

// answer notes the first answer to a command.
func (m *many) answer(i int, a command.Answer, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.answered[i] {
		return
	}
	m.answered[i], m.replies[i] = true, Reply{a, err}
	if m.left--; m.left == 0 {
		close(m.done)
	}
}

// waits reports whether a command is not answered.
func (m *many) waits(i int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return !m.answered[i]
}
