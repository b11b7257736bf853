package sender

import (
	"time"

	"taskledger/engine/internal/command"
)

// Inbox takes the batches of a shard whose owner is in this process. Its dynamic type is comparable, and its
// methods never block.
type Inbox interface {
	// Put adds a batch. reply may be called more than once.
	Put(b *command.Batch, reply ReplyFunc)
	// From makes the owner take what waits in the lanes by itself.
	From(lanes *Here)
	// Wake makes the owner take a turn.
	Wake()
}

// ReplyFunc brings the answers to a batch back to its sender; nil acknowledges it. recorded reports that they are in
// the journal. It never blocks.
type ReplyFunc func(b *command.Batch, answers []command.Answer, recorded bool)

// Offers takes the answers to the offers of free slots that a node makes to owners. It holds the flights of
// command.LaneOffer, of which a shard may have several.
type Offers interface {
	// Answered takes the answers to an offer; nil acknowledges it.
	Answered(shard int, number uint64, answers []command.Answer)
	// Posted reports that an offer was written to the mailbox, or could not be.
	Posted(f *Flight)
	// FlightOf returns the offer of that number while it stands; else nil.
	FlightOf(shard int, number uint64) *Flight
	// Hasten sends what stands again: the bus has been lost.
	Hasten()
}

// ServeHere makes an owner in this process the destination of its shard, and sends it what is under way; nil ends
// that.
func (s *Sender) ServeHere(shard int, in Inbox) {
	if in == nil {
		s.owners.Delete(shard)
		for id := range s.lanes[shard] { // what the owner has not taken goes to the next one
			s.leave(shard, uint8(id))
		}
		return
	}
	in.From(&Here{s, shard})
	s.owners.Store(shard, in)
	s.OwnerChanged(shard)
}

// ServesHere reports whether the owner of a shard is in this process.
func (s *Sender) ServesHere(shard int) bool {
	_, here := s.owners.Load(shard)
	return here
}

// inboxHere returns the inbox of the owner in this process if it takes what waits in the lane by itself.
func (s *Sender) inboxHere(shard int, laneID uint8) Inbox {
	if laneID != command.LaneSubmit && laneID != command.LaneWork {
		return nil
	}
	if in, ok := s.owners.Load(shard); ok {
		return in.(Inbox)
	}
	return nil
}

func (s *Sender) replyHere(shard int) ReplyFunc {
	return func(b *command.Batch, answers []command.Answer, recorded bool) {
		s.answered(shard, b.Lane, b.Number, answers, recorded)
	}
}

// Here gives an owner in this process the lanes of its shard. It takes what waits in them when its turn begins, so
// that everything that has come until then shares an entry.
type Here struct {
	s     *Sender
	shard int
}

// LanesHere are the lanes that an owner takes by itself.
var LanesHere = [...]uint8{command.LaneSubmit, command.LaneWork}

// Now returns the time of the wall clock, for batches that depart. It is called without a lock.
func (h *Here) Now() time.Time { return h.s.cfg.Now() }

// Waiting returns how many commands wait.
func (h *Here) Waiting() (n int) {
	for _, id := range LanesHere {
		l := &h.s.lanes[h.shard][id]
		l.mu.Lock()
		n += len(l.waiting)
		l.mu.Unlock()
	}
	return n
}

// Depart returns the next batch of a lane, which goes into the inbox; nil when none waits or one is under way.
func (h *Here) Depart(in Inbox, laneID uint8, made time.Time) (b *command.Batch, reply ReplyFunc) {
	l := &h.s.lanes[h.shard][laneID]
	l.mu.Lock()
	f := h.s.nextFlight(l, h.shard, laneID, made)
	if f != nil {
		f.inbox, f.copies = in, 1
	}
	l.mu.Unlock()
	if f == nil {
		return nil, nil
	}
	return f.Batch, h.s.replyHere(h.shard)
}

// Gather lets whoever is ready to run add to what waits, as long as somebody does and for yieldMost: events per
// entry decide what a task costs. size returns how much waits.
func (h *Here) Gather(size func() int) {
	began := time.Now()
	for had := -1; h.s.yield.Yield(); {
		has := size()
		if has == had || time.Since(began) > yieldMost {
			return
		}
		had = has
	}
}
