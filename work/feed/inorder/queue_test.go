package inorder_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"taskledger/work/feed/inorder"
)

// source delivers as a durable consumer does, and judges what a queue hands out by the promises alone.
type source struct {
	queue   *inorder.Queue[uint64]
	last    uint64 // place of the message that was published last
	next    uint64 // place of the message that was delivered first last
	count   uint64
	pending []uint64 // delivered and not acknowledged, in order
	way     []inorder.Delivery[uint64]
	handed  []uint64 // by this queue, and not acknowledged
	sent    []uint64 // of them, those whose acknowledgement is not confirmed
	highest uint64   // place that this queue handed out
	removed []uint64 // from the source, while they were not acknowledged
}

func (s *source) publish(*rapid.T) { s.last++ }

func (s *source) send(place uint64) {
	s.count++
	s.way = append(s.way, inorder.Delivery[uint64]{
		Place: place,
		Count: s.count,
		Value: place,
	})
}

func (s *source) deliver(t *rapid.T) {
	if s.next == s.last {
		t.Skip("nothing new")
	}
	s.next++
	s.pending = append(s.pending, s.next)
	s.send(s.next)
}

func (s *source) redeliver(t *rapid.T) {
	if len(s.pending) == 0 {
		t.Skip("nothing pending")
	}
	s.send(rapid.SampledFrom(s.pending).Draw(t, "place"))
}

func (s *source) lose(t *rapid.T) {
	if len(s.way) == 0 {
		t.Skip("nothing on its way")
	}
	s.way = s.way[1:]
}

func (s *source) arrive(t *rapid.T) {
	if len(s.way) == 0 {
		t.Skip("nothing on its way")
	}
	d := s.way[0]
	s.way = s.way[1:]
	switch outcome := s.queue.Add(d); outcome {
	case inorder.Kept, inorder.Held:
		forgotten := slices.Contains(s.sent, d.Place) || slices.Contains(s.removed, d.Place)
		if !slices.Contains(s.pending, d.Place) && outcome == inorder.Held && !forgotten {
			t.Fatalf("message %d is acknowledged, and held", d.Place)
		}
	case inorder.Acknowledged:
		if slices.Contains(s.pending, d.Place) {
			t.Fatalf("message %d is not acknowledged", d.Place)
		}
	case inorder.Late:
		if slices.Contains(s.pending, d.Place) {
			t.Fatalf("message %d came late", d.Place)
		}
	}
}

// settle has the queue compare itself with the source, once it was told what the source has no more.
func (s *source) settle(*rapid.T) {
	is := inorder.State{
		Place:   s.next,
		Count:   s.count,
		Pending: len(s.pending),
	}
	if s.queue.Missing(is) <= 0 {
		for _, place := range s.removed {
			s.queue.Doubt(place)
		}
	}
	s.queue.Settle(is)
}

func (s *source) hand(t *rapid.T) {
	d, ok := s.queue.Next()
	if !ok {
		t.Skip("nothing to hand out")
	}
	if d.Place <= s.highest || d.Value != d.Place {
		t.Fatalf("message %d after %d", d.Place, s.highest)
	}
	for _, earlier := range s.pending {
		if earlier < d.Place && !slices.Contains(s.handed, earlier) {
			t.Fatalf("message %d before %d, which is not acknowledged", d.Place, earlier)
		}
	}
	s.highest = d.Place
	s.handed = append(s.handed, d.Place)
}

func (s *source) acknowledge(t *rapid.T) {
	if len(s.handed) == 0 {
		t.Skip("nothing open")
	}
	place := rapid.SampledFrom(s.handed).Draw(t, "place")
	is := func(p uint64) bool { return p == place }
	s.handed, s.pending = slices.DeleteFunc(s.handed, is), slices.DeleteFunc(s.pending, is)
	s.queue.Acknowledge(place)
}

// sendAck acknowledges a message, and nobody hears whether the source has taken that.
func (s *source) sendAck(t *rapid.T) {
	if len(s.handed) == 0 {
		t.Skip("nothing open")
	}
	place := rapid.SampledFrom(s.handed).Draw(t, "place")
	s.queue.Doubt(place)
	if rapid.Bool().Draw(t, "taken") {
		s.pending = slices.DeleteFunc(s.pending, func(p uint64) bool { return p == place })
	}
	if !slices.Contains(s.sent, place) {
		s.sent = append(s.sent, place)
	}
}

// confirm has the acknowledgements that were sent repeated, and confirmed.
func (s *source) confirm(*rapid.T) {
	for _, place := range s.sent {
		is := func(p uint64) bool { return p == place }
		s.handed, s.pending = slices.DeleteFunc(s.handed, is), slices.DeleteFunc(s.pending, is)
		s.queue.Acknowledge(place)
	}
	s.sent = nil
}

// remove removes a message from the source, which has delivered it, without a word.
func (s *source) remove(t *rapid.T) {
	if len(s.pending) == 0 {
		t.Skip("nothing pending")
	}
	place := rapid.SampledFrom(s.pending).Draw(t, "place")
	s.pending = slices.DeleteFunc(s.pending, func(p uint64) bool { return p == place })
	s.removed = append(s.removed, place)
}

func (s *source) die(*rapid.T) {
	s.queue, s.handed, s.highest, s.way, s.sent = new(inorder.Queue[uint64]), nil, 0, nil, nil
}

func TestQueue_HandsOutEachMessageOnceInOrderAndNoneBeforeAnOpenOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := &source{queue: new(inorder.Queue[uint64])}
		t.Repeat(map[string]func(*rapid.T){
			"publish":     s.publish,
			"deliver":     s.deliver,
			"redeliver":   s.redeliver,
			"lose":        s.lose,
			"arrive":      s.arrive,
			"settle":      s.settle,
			"hand":        s.hand,
			"acknowledge": s.acknowledge,
			"send an ack": s.sendAck,
			"confirm":     s.confirm,
			"remove":      s.remove,
			"die":         s.die,
		})
		s.confirm(t)
		for s.next < s.last || len(s.pending) > 0 { // once all is well, everything is handed out
			for s.next < s.last {
				s.deliver(t)
			}
			for _, place := range s.pending {
				s.send(place)
			}
			for len(s.way) > 0 {
				s.arrive(t)
			}
			s.settle(t)
			for {
				d, ok := s.queue.Next()
				if !ok {
					break
				}
				s.handed = append(s.handed, d.Place)
			}
			for _, place := range s.pending {
				if !slices.Contains(s.handed, place) {
					t.Fatalf("handed out %v of %v", s.handed, s.pending)
				}
			}
			for _, place := range s.handed {
				s.queue.Acknowledge(place)
			}
			s.pending, s.handed = nil, nil
		}
	})
}

func TestQueue_TellsWhereASourceBeginsThatHasForgottenItsDeliveries(t *testing.T) {
	var q inorder.Queue[string]
	add := func(place, count uint64) inorder.Outcome {
		return q.Add(inorder.Delivery[string]{Place: place, Count: count})
	}
	if _, known := q.Restart(); known {
		t.Error("a queue that begins knows where its source has to")
	}
	q.Settle(inorder.State{Place: 4, Count: 4})
	want := func(what string, want uint64) {
		t.Helper()
		if place, known := q.Restart(); place != want || !known {
			t.Errorf("%s: begin at %d, %v; want %d", what, place, known, want)
		}
	}
	want("all acknowledged", 5)
	add(6, 1)
	add(8, 2)
	q.Next()
	q.Next()
	q.Acknowledge(8)
	want("the first one open", 6)
	add(6, 1)
	if is := add(8, 2); is != inorder.Acknowledged {
		t.Errorf("a message that was acknowledged is %d", is)
	}
	if is := add(7, 3); is != inorder.Late {
		t.Errorf("a message that was never handed out is %d", is)
	}
	q.Acknowledge(6)
	add(9, 4)
	add(12, 6)
	want("a delivery missing before the last one", 9)
	if waiting := q.Waiting(); len(waiting) != 1 || waiting[0].Place != 9 {
		t.Errorf("waiting %v", waiting)
	}
}

func TestQueue_RemembersManyPlaces(t *testing.T) {
	var q inorder.Queue[string]
	q.Settle(inorder.State{})
	for place := range uint64(50_000) {
		q.Add(inorder.Delivery[string]{Place: place + 1, Count: place + 1})
		q.Next()
		q.Acknowledge(place + 1)
	}
	for place, want := range map[uint64]inorder.Outcome{
		1:      inorder.Late,
		42_000: inorder.Acknowledged,
		50_000: inorder.Acknowledged,
	} {
		if is := q.Add(inorder.Delivery[string]{Place: place, Count: 50_001}); is != want {
			t.Errorf("message %d is %d, want %d", place, is, want)
		}
	}
}
