package projection

import (
	"container/list"

	"taskledger/events"
)

// SenderLane names a stream of numbered command batches.
type SenderLane struct {
	Sender string
	Lane   uint8
}

// Decided is what a shard remembers of a sender's lane: the highest number decided, and its answers. It is never changed.
type Decided struct {
	SenderLane
	Number  uint64
	Answers []byte
	LastUse events.Millis
}

// Limits on remembered lanes.
const (
	// KeepSenders is how long a lane is remembered after its last use, in entry time; senders stop resending earlier.
	KeepSenders = 60 * 60 * 1000
	// MaxSenders bounds the lanes of a shard; a batch of a further one is refused.
	MaxSenders = 100_000
)

// senders remembers lanes in order of last use.
type senders struct {
	byLane map[SenderLane]*list.Element
	order  *list.List // of *Decided, the least recently used first
}

func newSenders() senders {
	return senders{byLane: map[SenderLane]*list.Element{}, order: list.New()}
}

func (s *senders) get(l SenderLane) *Decided {
	if e := s.byLane[l]; e != nil {
		return e.Value.(*Decided)
	}
	return nil
}

func (s *senders) record(o *events.Origin, at events.Millis) {
	key := SenderLane{o.Sender, o.Lane}
	e := s.byLane[key]
	d := &Decided{key, o.Number, o.Answers, at}
	if e == nil {
		s.add(d)
		return
	}
	e.Value = d
	s.order.MoveToBack(e)
}

// add remembers a further lane.
func (s *senders) add(d *Decided) { s.byLane[d.SenderLane] = s.order.PushBack(d) }

// all returns what is remembered, the least recently used first.
func (s *senders) all() []*Decided {
	all := make([]*Decided, 0, s.order.Len())
	for e := s.order.Front(); e != nil; e = e.Next() {
		all = append(all, e.Value.(*Decided))
	}
	return all
}

func (s *senders) expire(now events.Millis) {
	for e := s.order.Front(); e != nil && e.Value.(*Decided).LastUse+KeepSenders < now; e = s.order.Front() {
		delete(s.byLane, e.Value.(*Decided).SenderLane)
		s.order.Remove(e)
	}
}
