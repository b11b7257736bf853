package engine

import (
	"taskledger/events"
	"taskledger/internal/wire"
)

// offerCommand is a standing offer: slots of a node that the owner may fill. It is answered with assignments, or with
// none when a later offer of the sender closes it.
type offerCommand struct {
	Node      string
	Lease     events.Millis
	Slots     int
	Behaviors []offeredBehavior
}

type offeredBehavior struct {
	Behavior string
	Slots    int
}

func (*offerCommand) op() uint64 { return opOffer }

func (c *offerCommand) size() int { return 64 + 64*len(c.Behaviors) }

func (c *offerCommand) encode(w *wire.Writer) {
	w.Array(4)
	w.Text(c.Node)
	w.Int(int64(c.Lease))
	w.Int(int64(c.Slots))
	w.Array(2 * len(c.Behaviors))
	for _, b := range c.Behaviors {
		w.Text(b.Behavior)
		w.Int(int64(b.Slots))
	}
}

func (c *offerCommand) decode(r *wire.Reader) {
	r.ArrayOf(4)
	c.Node, c.Lease, c.Slots = r.Text(), events.Millis(r.Int()), int(r.Int())
	if n := pairs(r); n > 0 {
		c.Behaviors = make([]offeredBehavior, n)
	}
	for i := range c.Behaviors {
		c.Behaviors[i] = offeredBehavior{r.Text(), int(r.Int())}
	}
}

// pairs reads the head of an array of pairs and returns how many there are.
func pairs(r *wire.Reader) int {
	n := r.Array()
	if n%2 != 0 {
		r.Fail("array of %d values for pairs", n)
		return 0
	}
	return n / 2
}

// assignment tells a node to make an attempt: the answer to its offer.
type assignment struct {
	attemptName
	behavior string
	number   uint32
	failures uint32
	lost     uint32
	policy   events.Policy
	params   events.Payload
	paramsAt events.Ref // where they stand in the journal, when they are not in memory; else 0
}

func (a *assignment) encode(w *wire.Writer) {
	w.Array(9)
	w.Text(string(a.Task))
	w.Uint(uint64(a.Started))
	w.Text(a.behavior)
	w.Uint(uint64(a.number))
	w.Uint(uint64(a.failures))
	w.Uint(uint64(a.lost))
	a.policy.Encode(w)
	w.Bytes(a.params)
	w.Uint(uint64(a.paramsAt))
}

func (a *assignment) decode(r *wire.Reader) {
	r.ArrayOf(9)
	a.Task, a.Started, a.behavior = events.TaskID(r.Text()), events.Ref(r.Uint()), r.Name()
	a.number, a.failures, a.lost = uint32(r.Uint()), uint32(r.Uint()), uint32(r.Uint())
	a.policy.Decode(r)
	a.params, a.paramsAt = r.Bytes(), events.Ref(r.Uint())
}

func decodeAssignments(data []byte) ([]assignment, error) {
	if len(data) == 0 {
		return nil, nil
	}
	r, err := scanned(data) // the message was, but this part was opaque to that
	if err != nil {
		return nil, err
	}
	all := make([]assignment, arrayOf(r, data, 19))
	for i := range all {
		all[i].decode(r)
	}
	return all, r.Close()
}
