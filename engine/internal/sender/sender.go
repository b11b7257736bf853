// Package sender takes commands to the owners of their shards, and brings the answers back: to an owner in this
// process by a call, else over the bus, else through the mailboxes of the store.
//
// Commands of one shard wait in lanes. Those that gather in a lane while a batch is under way become its next
// batch. A batch is sent again, the same bytes under the same number, until it is answered, so an owner decides it
// once, and every caller has one answer.
package sender

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/liveness"
	"taskledger/store"
)

const (
	// BusTimeout bounds the wait for an answer or an acknowledgement over the bus. Then a batch is sent through the
	// store.
	BusTimeout = 250 * time.Millisecond
	// resendEvery is the interval at which an acknowledged or posted batch without an answer is sent again.
	resendEvery = 2 * time.Second
	// GiveUp bounds the time for which a batch is sent again. Owners remember numbers longer, so that a number is
	// never decided twice. Reports of attempts are never given up: each names its attempt, and giving one up means
	// another run.
	GiveUp = 30 * time.Minute
)

// Config configures a sender.
type Config struct {
	ID        string // random, and the same for as long as the node or client runs
	Principal string // of commands that are sent on nobody's behalf
	Shards    int
	Bus       store.Bus        // nil: everything goes through the mailboxes
	Mailbox   store.Mailbox    // nil: nothing leaves while the bus is away
	Members   store.Members    // shows whether any node is alive; nil: commands wait for one until their contexts end
	Now       func() time.Time // wall clock; it is called without a lock
	Log       *slog.Logger
}

// Sender sends the commands of one process. Its methods may be called concurrently.
type Sender struct {
	cfg       Config
	yield     yielder
	lanes     [][command.LaneCount]lane // by shard
	owners    sync.Map                  // shard -> the Inbox of its owner, where that is in this process
	connected atomic.Bool               // to the bus
	outbox    [writers]chan *Flight     // to be posted, those of one shard to one writer, in order
	detoured  []atomic.Bool             // by shard: its last batch was posted
	offers    Offers                    // nil in a client
	closed    atomic.Pointer[error]     // with which calls end from then on; nil = it has not ended
	liveness  *liveness.Monitor
	waiters   sync.Pool // idle, not of the process: a bubble of time must not share them
}

// New returns a sender. It sends at once; what goes unanswered is sent again by Run alone.
func New(cfg Config) *Sender {
	s := &Sender{
		cfg:      cfg,
		lanes:    make([][command.LaneCount]lane, cfg.Shards),
		detoured: make([]atomic.Bool, cfg.Shards),
		liveness: liveness.New(),
		waiters:  sync.Pool{New: newWaiter},
	}
	s.liveness.Members = cfg.Members
	for i := range s.outbox {
		s.outbox[i] = make(chan *Flight, cfg.Shards*int(command.LaneCount))
	}
	return s
}

// ID returns the id that batches carry and answers are addressed to.
func (s *Sender) ID() string { return s.cfg.ID }

// Connected reports whether the bus is there.
func (s *Sender) Connected() bool { return s.connected.Load() }

// Closed reports whether the sender has ended: what is sent from then on is answered by nobody.
func (s *Sender) Closed() bool { return s.closed.Load() != nil }

// BusAway reports whether notifications of a shard cannot be expected over the bus.
func (s *Sender) BusAway(shard int) bool {
	return s.cfg.Bus == nil || !s.connected.Load() || s.detoured[shard].Load()
}

// Attach makes the sender that of a node, whose offers it takes to owners. A node that is there, or about to join,
// needs no other one to be alive. It is called before Run.
func (s *Sender) Attach(offers Offers) {
	s.offers = offers
	s.liveness.Members = nil
}

// Run sends again what goes unanswered, until ctx ends; then it fails every caller that waits, by what the cause of ctx
// tells where that wraps task.ErrClosed.
func (s *Sender) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return s.resendLoop(ctx) })
	if s.cfg.Mailbox != nil {
		for _, batches := range s.outbox {
			g.Go(func() error { return s.postLoop(ctx, batches) })
		}
		g.Go(func() error { return s.readAnswers(ctx) })
		g.Go(func() error { return s.liveness.Run(ctx, s.nodesMissed, s.release) })
	}
	return g.Wait()
}

// Close fails every caller that waits. Run does so at its end; without Run, the owner of the sender calls Close.
func (s *Sender) Close() { s.closeFor(errClosed) }

// closeFor is Close with an error that wraps errClosed.
func (s *Sender) closeFor(why error) {
	s.closed.Store(&why)
	unknown := errUnknown
	if why != errClosed {
		unknown = fmt.Errorf("%w: %w", errUnknown, why)
	}
	for shard := range s.lanes {
		for id := range s.lanes[shard] {
			l := &s.lanes[shard][id]
			l.mu.Lock()
			f, waiting := l.flight, l.waiting
			l.flight, l.waiting = nil, nil
			l.mu.Unlock()
			if f != nil {
				f.fail(unknown)
			}
			(&Flight{calls: waiting}).fail(why)
		}
	}
}

// Hint publishes what nobody depends on: whoever misses it finds out by other means.
func (s *Sender) Hint(subject, reply string, data []byte) {
	if s.cfg.Bus == nil || !s.connected.Load() {
		return
	}
	if err := s.cfg.Bus.Publish(subject, reply, data); err != nil {
		s.cfg.Log.Debug("hint not sent", "subject", subject, "err", err)
	}
}
