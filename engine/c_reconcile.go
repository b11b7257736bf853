package engine

import (
	"cmp"
	"slices"

	"taskledger/events"
	"taskledger/internal/wire"
	"taskledger/projection"
)

// rollCallMost is how many attempts one command lists. With ids of full length they fit into a batch, and so does the
// answer that names them all; an entry with it stays below events.MaxEntryBytes.
const rollCallMost = 2048

// rollCallCommand lists the attempts of a node in a shard, running or with an unanswered outcome, that started in the
// range from From to before To.
type rollCallCommand struct {
	Node     string
	Epoch    int64 // of the owner that it is for: what the node started in its own shard under a later one is not listed
	Attempts []attemptName
	Answered uint64     // every offer up to this number is answered
	From, To events.Ref // To 0: without end
}

// covers reports whether an attempt that started there would be listed.
func (c *rollCallCommand) covers(started events.Ref) bool {
	return started >= c.From && (c.To == 0 || started < c.To)
}

// attemptName names an attempt: a task and the position of the Started.
type attemptName struct {
	Task    events.TaskID
	Started events.Ref
}

func (*rollCallCommand) op() uint64 { return opRollCall }

func (c *rollCallCommand) size() int {
	n := commandBytes + len(c.Node)
	for i := range c.Attempts {
		n += 16 + len(c.Attempts[i].Task)
	}
	return n
}

func (c *rollCallCommand) encode(w *wire.Writer) {
	w.Array(6)
	w.Text(c.Node)
	w.Int(c.Epoch)
	encodeAttempts(w, c.Attempts)
	w.Uint(c.Answered)
	w.Uint(uint64(c.From))
	w.Uint(uint64(c.To))
}

func (c *rollCallCommand) decode(r *wire.Reader) {
	r.ArrayOf(6)
	c.Node, c.Epoch, c.Attempts, c.Answered = r.Text(), r.Int(), decodeAttempts(r), r.Uint()
	c.From, c.To = events.Ref(r.Uint()), events.Ref(r.Uint())
}

func encodeAttempts(w *wire.Writer, attempts []attemptName) {
	w.Array(2 * len(attempts))
	for _, a := range attempts {
		w.Text(string(a.Task))
		w.Uint(uint64(a.Started))
	}
}

func decodeAttempts(r *wire.Reader) (attempts []attemptName) {
	if n := pairs(r); n > 0 {
		attempts = make([]attemptName, n)
	}
	for i := range attempts {
		attempts[i] = attemptName{events.TaskID(r.Text()), events.Ref(r.Uint())}
	}
	return attempts
}

// rollCall compares what a node runs with what the state says it runs. It releases the attempts that the node does not
// know although their assignment must have reached it: those that answered an offer which the node counts as answered,
// and those that an owner before this one started on its own node (began is the first entry of this ownership). Attempts
// that the roll call does not cover are left alone, and what a full entry leaves over is for the next one. It returns the
// node's attempts that are over or cancelled.
func (d *decider) rollCall(c *rollCallCommand, self string, began uint64) (over []attemptName, all bool) {
	present := make(map[attemptName]bool, len(c.Attempts))
	for _, a := range c.Attempts {
		present[a] = true
		if t := d.state.Task(a.Task); t == nil || t.Started != a.Started || t.Node != c.Node || t.Cancelled {
			over = append(over, a)
		}
	}
	var missing []*projection.Task
	for t := range d.state.Running(c.Node) {
		answered := t.Offer > 0 && t.Offer <= c.Answered
		earlier := t.Offer == 0 && (c.Node != self || t.Started.Entry() < began)
		if (answered || earlier) && c.covers(t.Started) && !present[attemptName{t.ID, t.Started}] {
			missing = append(missing, t)
		}
	}
	slices.SortFunc(missing, byStart)
	for _, t := range missing {
		if d.full() {
			return over, false
		}
		d.giveBack(t, &events.Released{Until: d.now})
	}
	return over, true
}

func (c *rollCallCommand) decide(d *decider) answer {
	if c.Epoch != d.epoch {
		return answer{code: answerStale}
	}
	d.offersAnswered(d.sender, c.Answered)
	over, all := d.rollCall(c, d.self, d.began)
	if !all {
		return answer{code: answerTryAgain}
	}
	if len(over) == 0 {
		return answer{}
	}
	return answer{data: encodeNames(over)}
}

func encodeNames(names []attemptName) []byte {
	var w wire.Writer
	encodeAttempts(&w, names)
	return w.B
}

func decodeNames(data []byte) ([]attemptName, error) {
	if len(data) == 0 {
		return nil, nil
	}
	r, err := scanned(data)
	if err != nil {
		return nil, err
	}
	names := decodeAttempts(r)
	return names, r.Close()
}

// partsOfRollCall lists attempts in commands of bounded size, which together cover every Started.
func partsOfRollCall(c rollCallCommand, attempts []attemptName) (parts []*rollCallCommand) {
	slices.SortFunc(attempts, func(a, b attemptName) int { return cmp.Compare(a.Started, b.Started) })
	for len(attempts) > rollCallMost {
		part := c
		part.Attempts, part.To = attempts[:rollCallMost:rollCallMost], attempts[rollCallMost].Started
		parts = append(parts, &part)
		attempts, c.From = attempts[rollCallMost:], part.To
	}
	c.Attempts = attempts
	return append(parts, &c)
}
