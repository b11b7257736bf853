package command

import (
	"bytes"
	"cmp"

	"taskledger/events"
	"taskledger/internal/wire"
	"taskledger/projection"
)

// MaxOffered bounds the behaviors of a node: each offer names those that have free slots.
const MaxOffered = 2048

// Offer is a standing offer: slots of a node that the owner may fill. It is answered with assignments, or with
// none when a later offer of the sender closes it.
type Offer struct {
	Node      string
	Lease     events.Millis
	Slots     int
	Behaviors []OfferedBehavior
}

// OfferedBehavior bounds the slots of an offer that a behavior may fill.
type OfferedBehavior struct {
	Behavior string
	Slots    int
}

func (*Offer) Op() uint64 { return opOffer }

func (c *Offer) Size() int { return 64 + len(c.Node) + 64*len(c.Behaviors) }

func (c *Offer) Limits() error {
	for i := range c.Behaviors {
		if err := limitBehavior(c.Behaviors[i].Behavior); err != nil {
			return err
		}
	}
	return cmp.Or(limitNode(c.Node), atMost("behaviors", len(c.Behaviors), MaxOffered), limitTime("lease", c.Lease))
}

func (c *Offer) encode(w *wire.Writer) {
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

func (c *Offer) decode(r *wire.Reader) {
	r.ArrayOf(4)
	c.Node, c.Lease, c.Slots = r.Text(), events.Millis(r.Int()), int(r.Int())
	if n := pairs(r); n > 0 {
		c.Behaviors = make([]OfferedBehavior, n)
	}
	for i := range c.Behaviors {
		c.Behaviors[i] = OfferedBehavior{r.Text(), int(r.Int())}
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

// Assignment makes a node run an attempt. It is the answer to an offer.
type Assignment struct {
	AttemptName
	Behavior string
	Number   uint32
	Failures uint32
	Lost     uint32
	Policy   events.Policy
	Params   events.Payload
	ParamsAt events.Ref // where they stand in the journal, when they are not in memory; else 0
	Life     events.Ref // of the task; 0 = the owner does not tell it
}

// AssignmentOf is the attempt that a task has just started. Its failures and losses are those that the task's policy
// counts.
func AssignmentOf(state *projection.Shard, t *projection.Task) Assignment {
	lost, failed := state.Tries(t, t.StartedAt)
	a := Assignment{
		AttemptName: AttemptName{t.ID, t.Started},
		Behavior:    t.Kind.Behavior,
		Number:      t.Attempt,
		Failures:    uint32(failed),
		Lost:        uint32(lost),
		Policy:      t.Kind.Policy,
		Params:      t.Params,
		Life:        t.Created,
	}
	if t.ParamsElided {
		a.ParamsAt = t.ParamsAt
	}
	return a
}

// EncodeAssignments answers an Offer with tasks that have just started.
func EncodeAssignments(state *projection.Shard, tasks []*projection.Task) []Answer {
	w := wire.Scratch()
	defer w.Done()
	w.Array(len(tasks))
	for _, t := range tasks {
		a := AssignmentOf(state, t)
		a.Encode(w)
	}
	return []Answer{{Data: bytes.Clone(w.B)}}
}

func (a *Assignment) Encode(w *wire.Writer) {
	fields := 9
	if a.Life != 0 {
		fields++
	}
	w.Array(fields)
	w.Text(string(a.Task))
	w.Uint(uint64(a.Started))
	w.Text(a.Behavior)
	w.Uint(uint64(a.Number))
	w.Uint(uint64(a.Failures))
	w.Uint(uint64(a.Lost))
	a.Policy.Encode(w)
	w.Bytes(a.Params)
	w.Uint(uint64(a.ParamsAt))
	if a.Life != 0 {
		w.Uint(uint64(a.Life))
	}
}

func (a *Assignment) decode(r *wire.Reader) {
	tail := r.ArrayFrom(9)
	a.Task, a.Started, a.Behavior = events.TaskID(r.Text()), events.Ref(r.Uint()), r.Name()
	a.Number, a.Failures, a.Lost = uint32(r.Uint()), uint32(r.Uint()), uint32(r.Uint())
	a.Policy.Decode(r)
	a.Params, a.ParamsAt = r.Bytes(), events.Ref(r.Uint())
	if tail > 0 {
		a.Life = events.Ref(r.Uint())
		tail--
	}
	r.Skip(tail)
}

// DecodeAssignments reads the answer to an Offer; nothing stands for none.
func DecodeAssignments(data []byte) ([]Assignment, error) {
	if len(data) == 0 {
		return nil, nil
	}
	var all []Assignment
	err := DecodeLenient(data, func(r *wire.Reader) {
		all = make([]Assignment, ArrayOf(r, data, 19))
		for i := range all {
			all[i].decode(r)
		}
	})
	return all, err
}
