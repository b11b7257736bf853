package command

import (
	"errors"
	"slices"
	"time"

	"taskledger/events"
	"taskledger/internal/wire"
	"taskledger/store"
)

// Asked names the caller behind the commands of a batch from one of them on; the zero Asker is the sender.
type Asked struct {
	From  int // index of the first of these commands
	Asker events.Asker
}

// Add appends a command, and notes who asked for it; nil is the sender.
func (b *Batch) Add(c Command, asker *events.Asker) {
	var is, last events.Asker
	if asker != nil {
		is = *asker
	}
	if n := len(b.Asked); n > 0 {
		last = b.Asked[n-1].Asker
	}
	if is != last {
		b.Asked = append(b.Asked, Asked{len(b.Commands), is})
	}
	b.Commands = append(b.Commands, c)
}

// encodeAsked writes an array of indexes and callers.
func (b *Batch) encodeAsked(w *wire.Writer) {
	w.Array(2 * len(b.Asked))
	for i := range b.Asked {
		w.Uint(uint64(b.Asked[i].From))
		b.Asked[i].Asker.Encode(w)
	}
}

// decodeAsked reads what encodeAsked wrote, for a batch whose commands are known.
func (b *Batch) decodeAsked(r *wire.Reader) {
	n := r.Array()
	if n == 0 || n%2 != 0 || n > 2*len(b.Commands) {
		r.Fail("%d callers of %d commands", n/2, len(b.Commands))
		return
	}
	b.Asked = make([]Asked, n/2)
	next := 0
	var last events.Asker
	for i := range b.Asked {
		from := r.Uint()
		if from < uint64(next) || from >= uint64(len(b.Commands)) {
			r.Fail("caller of command %d of %d", from, len(b.Commands))
			return
		}
		b.Asked[i].From = int(from)
		if b.Asked[i].Asker.Decode(r); b.Asked[i].Asker == last {
			r.Fail("caller of command %d is named again", from)
			return
		}
		next, last = int(from)+1, b.Asked[i].Asker
	}
}

// decodeTail reads what follows the commands of a batch that a later release may have made. Where this release does not know all of it,
// it knows none of the commands: who asks for them, or under which condition, is half understood.
func (b *Batch) decodeTail(r *wire.Reader, fields int) {
	known := fields <= 7
	if fields >= 7 {
		asked := wire.NewReader(r.Raw())
		b.decodeAsked(asked)
		switch err := asked.Close(); {
		case errors.Is(err, wire.ErrTail):
			b.Asked, known = nil, false
		case err != nil:
			r.FailBy(err)
		}
		r.Skip(fields - 7)
	}
	if known {
		return
	}
	for i, c := range b.Commands {
		unknown, later := c.(*Unknown)
		b.Commands[i] = &Unknown{Number: c.Op(), Known: !later || unknown.Known}
	}
}

// limits refuses a batch that is too large, or whose callers or principal no event can name.
func (b *Batch) limits() error {
	for i := range b.Asked {
		if err := b.Asked[i].Asker.Validate(); err != nil {
			return &store.InvalidError{Field: "asker", Problem: err.Error()}
		}
	}
	if err := limitNote("principal", b.Principal); err != nil {
		return err
	}
	return atMost("batch", b.size(), maxBatchSize)
}

// Origin returns the batch as an origin in an entry.
func (b *Batch) Origin() events.Origin {
	return events.Origin{Sender: b.Sender, Lane: b.Lane, Number: b.Number, Asker: events.Asker{Principal: b.Principal}}
}

// countsEvery is how long after the last entry a batch without events is recorded because time has to be counted.
const countsEvery = time.Second

// DecideBatch decides every command of a batch of LaneSubmit or LaneWork, unless it has to refuse all of them; what does not fit into the
// entry shall be sent again. A batch without events leaves no trace in the entry, unless Counts.
func (d *Decider) DecideBatch(b *Batch) []Answer {
	if why, refuse := d.refusesBatch(b); refuse {
		return slices.Repeat([]Answer{why}, len(b.Commands))
	}
	before := len(d.Entry.Entry.Events)
	d.Counts = false
	answers := make([]Answer, len(b.Commands))
	batch := d.Entry.AddOrigin(b.Origin())
	d.Sender, d.Origin = b.Sender, batch
	d.UnderWay = time.Duration(max(d.Wall-b.Made, 0)) * time.Millisecond
	asked := b.Asked
	refused, decided, last := d.Misfits.of(b), 0, 0
	for i, c := range b.Commands {
		if len(asked) > 0 && asked[0].From == i {
			d.Origin, d.caller = batch, nil
			if asked[0].Asker != (events.Asker{}) {
				d.caller = &asked[0].Asker
			}
			asked = asked[1:]
		}
		switch n := refused[i]; {
		case n > 0:
			answers[i] = Refused(AnswerInvalid, "%v", atMost("entry of the command", n, n-1))
		case decided > 0 && d.Entry.Size()+c.Size() > d.Misfits.limit():
			answers[i] = Answer{Code: AnswerTryAgain}
		default:
			answers[i] = d.Decide(c)
			decided, last = decided+1, i
		}
	}
	d.Origin, d.caller = 0, nil
	if len(d.Entry.Entry.Events) == before && !(d.Counts && !d.StoreFull && d.Now >= d.State.Time.Add(countsEvery)) {
		d.Entry.DropOrigin()
	} else {
		d.Entry.SetAnswers(EncodeAnswers(answers))
		d.Misfits.recorded(decided, last)
	}
	return answers
}

// origin returns that of the next event. A caller is recorded with the first event that it causes.
func (d *Decider) origin() int {
	if d.caller != nil && d.Origin != 0 {
		d.Origin = d.Entry.AddOrigin(events.Origin{Batch: d.Origin, Asker: *d.caller})
		d.caller = nil
	}
	return d.Origin
}
