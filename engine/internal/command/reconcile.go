package command

import (
	"cmp"
	"slices"

	"taskledger/events"
	"taskledger/internal/wire"
	"taskledger/projection"
)

// MaxReconciled bounds the attempts that one command lists. With ids of full length they fit into a batch, and so does
// the answer that names them all; an entry with it stays below events.MaxEntryBytes.
const MaxReconciled = 2048

// Reconcile lists the attempts of a node in a shard, running or with an unanswered outcome, that started in the
// range from From to before To.
type Reconcile struct {
	Node     string
	Epoch    int64 // of the owner that it is for: attempts that the node started itself under a later one are left out
	Attempts []AttemptName
	Answered uint64     // every offer up to this number is answered
	From, To events.Ref // To 0: without end
}

// covers reports whether an attempt that started there would be listed.
func (c *Reconcile) covers(started events.Ref) bool {
	return started >= c.From && (c.To == 0 || started < c.To)
}

// AttemptName names an attempt: a task and the position of the Started.
type AttemptName struct {
	Task    events.TaskID
	Started events.Ref
}

func (*Reconcile) Op() uint64 { return opReconcile }

func (c *Reconcile) Size() int {
	n := commandBytes + len(c.Node)
	for i := range c.Attempts {
		n += 16 + len(c.Attempts[i].Task)
	}
	return n
}

func (c *Reconcile) Limits() error {
	for i := range c.Attempts {
		if err := limitID(c.Attempts[i].Task); err != nil {
			return err
		}
	}
	return cmp.Or(limitNode(c.Node), atMost("attempts", len(c.Attempts), MaxReconciled))
}

func (c *Reconcile) encode(w *wire.Writer) {
	w.Array(6)
	w.Text(c.Node)
	w.Int(c.Epoch)
	encodeAttempts(w, c.Attempts)
	w.Uint(c.Answered)
	w.Uint(uint64(c.From))
	w.Uint(uint64(c.To))
}

func (c *Reconcile) decode(r *wire.Reader) {
	r.ArrayOf(6)
	c.Node, c.Epoch, c.Attempts, c.Answered = r.Text(), r.Int(), decodeAttempts(r), r.Uint()
	c.From, c.To = events.Ref(r.Uint()), events.Ref(r.Uint())
}

func encodeAttempts(w *wire.Writer, attempts []AttemptName) {
	w.Array(2 * len(attempts))
	for _, a := range attempts {
		w.Text(string(a.Task))
		w.Uint(uint64(a.Started))
	}
}

func decodeAttempts(r *wire.Reader) (attempts []AttemptName) {
	if n := pairs(r); n > 0 {
		attempts = make([]AttemptName, n)
	}
	for i := range attempts {
		attempts[i] = AttemptName{events.TaskID(r.Text()), events.Ref(r.Uint())}
	}
	return attempts
}

// reconcile compares the attempts that a node runs with those that it runs by the state. It releases the attempts
// that the node does not know although their assignment must have reached it: those that answered an offer which
// the node counts as answered, and those that an earlier owner started on its own node (began is the first entry of
// this ownership). It leaves attempts outside the range of the command alone. It returns the node's attempts that
// have ended, or are to end, since hints of that may be lost; all is false when the entry is full before all are
// released.
func (d *Decider) reconcile(c *Reconcile, self string, began uint64) (ended []AttemptName, all bool) {
	present := make(map[AttemptName]bool, len(c.Attempts))
	for _, a := range c.Attempts {
		present[a] = true
		t := d.State.Task(a.Task)
		if t == nil || t.Started != a.Started || t.Node != c.Node || t.Cancelled || d.crewSuspended(t) {
			ended = append(ended, a)
		}
	}
	var missing []*projection.Task
	for t := range d.State.Running(c.Node) {
		answered := t.Offer > 0 && t.Offer <= c.Answered
		earlier := t.Offer == 0 && (c.Node != self || t.Started.Entry() < began)
		if (answered || earlier) && c.covers(t.Started) && !present[AttemptName{t.ID, t.Started}] {
			missing = append(missing, t)
		}
	}
	slices.SortFunc(missing, byStart)
	for _, t := range missing {
		if d.EntryFull() {
			return ended, false
		}
		d.giveBack(t, &events.Released{Until: d.Now, Node: t.Node})
	}
	return ended, true
}

// crewSuspended reports whether a task belongs to a crew whose lead is suspended. Its attempts end then, while those of
// other tasks that are suspended go on.
func (d *Decider) crewSuspended(t *projection.Task) bool {
	crew := d.State.Crew()
	if lead, along := crew.MadeFor(t.ID); along {
		t = d.State.Task(lead)
	} else if !crew.Leads(t.ID) {
		return false
	}
	return t != nil && t.Suspended
}

func (c *Reconcile) Decide(d *Decider) Answer {
	if c.Epoch != d.Epoch {
		return Answer{Code: AnswerStale}
	}
	d.OffersAnswered(d.Sender, c.Answered)
	ended, all := d.reconcile(c, d.Self, d.Began)
	if !all {
		return Answer{Code: AnswerTryAgain}
	}
	if len(ended) == 0 {
		return Answer{}
	}
	return Answer{Data: EncodeNames(ended)}
}

// EncodeNames encodes the answer to a Reconcile.
func EncodeNames(names []AttemptName) []byte {
	var w wire.Writer
	encodeAttempts(&w, names)
	return w.B
}

// DecodeNames decodes what EncodeNames returns; nothing stands for none.
func DecodeNames(data []byte) ([]AttemptName, error) {
	if len(data) == 0 {
		return nil, nil
	}
	r, err := Scanned(data)
	if err != nil {
		return nil, err
	}
	names := decodeAttempts(r)
	return names, r.Close()
}

// ReconcileParts lists attempts in commands of bounded size, which together cover every Started.
func ReconcileParts(c Reconcile, attempts []AttemptName) (parts []*Reconcile) {
	slices.SortFunc(attempts, func(a, b AttemptName) int { return cmp.Compare(a.Started, b.Started) })
	for len(attempts) > MaxReconciled {
		part := c
		part.Attempts, part.To = attempts[:MaxReconciled:MaxReconciled], attempts[MaxReconciled].Started
		parts = append(parts, &part)
		attempts, c.From = attempts[MaxReconciled:], part.To
	}
	c.Attempts = attempts
	return append(parts, &c)
}
