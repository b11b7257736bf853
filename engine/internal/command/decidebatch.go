package command

import (
	"slices"
	"time"

	"taskledger/events"
)

// countsEvery is the time after the last entry from which a batch without events is recorded so that time counts.
const countsEvery = time.Second

// DecideBatch decides every command of a batch of LaneSubmit or LaneWork, unless it has to refuse all of them.
// Commands that do not fit into the entry have to be sent again. A batch without events leaves no trace in the
// entry, unless Counts is set.
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
	refused, decided, last := d.Oversized.of(b), 0, 0
	for i, c := range b.Commands {
		if len(asked) > 0 && asked[0].From == i {
			d.Origin, d.caller = batch, nil
			if asked[0].Caller != (events.Caller{}) {
				d.caller = &asked[0].Caller
			}
			asked = asked[1:]
		}
		switch n := refused[i]; {
		case n > 0:
			answers[i] = Refused(AnswerInvalid, "%v", atMost("entry of the command", n, n-1))
		case decided > 0 && d.Entry.Size()+d.sizeOf(c) > d.Oversized.limit():
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
		d.Oversized.recorded(decided, last)
	}
	return answers
}

// origin returns that of the next event. A caller is recorded with the first event that it causes.
func (d *Decider) origin() int {
	if d.caller != nil && d.Origin != 0 {
		d.Origin = d.Entry.AddOrigin(events.Origin{Batch: d.Origin, Caller: *d.caller})
		d.caller = nil
	}
	return d.Origin
}
