package projection

import (
	"container/list"
	"math"

	"taskledger/events"
	"taskledger/internal/wire"
	"taskledger/projection/extension"
	"taskledger/projection/steady"
)

// SenderLane names a stream of numbered command batches.
type SenderLane struct {
	Sender string
	Lane   uint8
}

// Decided holds what a shard remembers of a sender's lane: the highest number decided, and its answers. It is never
// changed.
type Decided struct {
	SenderLane
	Number  uint64
	Answers []byte
	lastUse events.Millis // time of the entry
}

// Limits on remembered lanes.
const (
	// KeepSenders is the time for which a lane is remembered after its last use, as package steady counts: a clock that
	// jumps must not make a shard forget what was decided a moment ago. Senders stop resending earlier, after half of
	// it.
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

// seal records the batches of an entry, and forgets lanes that were not used for too long.
func (s *senders) seal(e *events.Entry, c *steady.Clock) {
	for i := range e.Origins {
		if o := &e.Origins[i]; o.Batch == 0 {
			s.record(o, e.Time)
		}
	}
	s.expire(e.Time, c)
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

func (s *senders) expire(now events.Millis, c *steady.Clock) {
	for e := s.order.Front(); e != nil && c.Since(e.Value.(*Decided).lastUse, now) > KeepSenders; e = s.order.Front() {
		delete(s.byLane, e.Value.(*Decided).SenderLane)
		s.order.Remove(e)
	}
}

// senderSection has the lanes that are remembered, the least recently used first. A row is the array
//
//	[sender, lane, number, answers, time of the entry of its last use]
func (s *Shard) senderSection() extension.Section {
	return extension.Section{Name: "senders", List: s.listSenders, Read: s.readSender}
}

func (s *Shard) listSenders() (int, func(int, *wire.Writer)) {
	all := s.senders.all()
	return len(all), func(i int, w *wire.Writer) {
		d := all[i]
		w.Array(5)
		w.Text(d.Sender)
		w.Uint(uint64(d.Lane))
		w.Uint(d.Number)
		w.Bytes(d.Answers)
		w.Int(int64(d.lastUse))
	}
}

func (s *Shard) readSender(in *wire.Reader) {
	in.ArrayOf(5)
	d := &Decided{SenderLane{in.Text(), uint8(upTo(in, math.MaxUint8))}, in.Uint(), in.Bytes(), events.Millis(in.Int())}
	if s.senders.get(d.SenderLane) != nil {
		in.Fail("sender %q, lane %d, is there twice", d.Sender, d.Lane)
	}
	if in.Err() == nil {
		s.senders.add(d)
	}
}

// clockSection has the gaps between entries of which not all the time counts, as package steady describes them.
func (s *Shard) clockSection() extension.Section {
	return extension.Section{Name: "gaps", List: s.steady.List, Read: s.steady.Read}
}
