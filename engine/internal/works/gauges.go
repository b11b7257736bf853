package works

import (
	"strings"

	"taskledger/engine/internal/tally"
	"taskledger/events"
	"taskledger/meter"
	"taskledger/projection/works"
)

// streamGauges counts what the streams of a shard have not done. After a turn only the works are counted anew of which
// events were recorded.
type streamGauges struct {
	all   *works.Works
	stale map[events.TaskID]struct{}
	told  map[events.TaskID]works.StreamTally // of works whose tally is not zero
	sum   works.StreamTally
}

func newStreamGauges(all *works.Works) *streamGauges {
	g := &streamGauges{
		all:   all,
		stale: map[events.TaskID]struct{}{},
		told:  map[events.TaskID]works.StreamTally{},
	}
	for of := range all.All {
		g.stale[of.ID] = struct{}{}
	}
	return g
}

// note has the work counted anew to which an event belongs, by its task or one of its holds.
func (g *streamGauges) note(ev *events.Event) {
	switch ev.Body.(type) {
	case *events.TokenMoved, *events.ChangeHeld, *events.HoldMoved:
		g.stale[ev.Task] = struct{}{}
		return
	}
	if len(g.told) == 0 {
		return
	}
	for _, id := range []events.TaskID{ev.Task, streamOf(ev.Task)} {
		if _, is := g.told[id]; is {
			g.stale[id] = struct{}{}
		}
	}
}

// streamOf returns the task of the stream of whose holds a task processes one; "" = of none.
func streamOf(id events.TaskID) events.TaskID {
	at := max(strings.LastIndex(string(id), ".h"), strings.LastIndex(string(id), "/h"))
	if at < 0 || events.HoldNumber(id[:at], id) == 0 {
		return ""
	}
	return id[:at]
}

// oldest returns when the oldest change came that is open; 0 = none is, or nobody knows when it came.
func (g *streamGauges) oldest() (at int64) {
	for _, is := range g.told {
		if is.Oldest != 0 && (at == 0 || is.Oldest < at) {
			at = is.Oldest
		}
	}
	return at
}

// countChanges counts what became of changes.
func countChanges(ev *events.Event, to *tally.Tally) {
	if b, is := ev.Body.(*events.TokenMoved); is {
		to.Add(meter.ChangesProcessed, int64(b.Items.Done))
		to.Add(meter.ChangesFailed, int64(b.Items.Failed))
		to.Add(meter.ChangesSkipped, int64(b.Items.Skipped))
	}
}

func (g *streamGauges) set(set func(meter.Gauge, int64)) {
	for id := range g.stale {
		now := g.all.Work(id).Tally()
		g.sum = g.sum.Plus(-1, g.told[id]).Plus(1, now)
		if now == (works.StreamTally{}) {
			delete(g.told, id)
		} else {
			g.told[id] = now
		}
	}
	if len(g.stale) > 0 {
		g.sum.Oldest = g.oldest()
	}
	clear(g.stale)
	set(meter.StreamChangesOpen, g.sum.Open)
	set(meter.StreamOldestAge, g.sum.Oldest)
	set(meter.StreamKeysHeld, g.sum.Keys)
	set(meter.StreamHoldsRetried, g.sum.Retried)
	set(meter.StreamHoldsParked, g.sum.Parked)
	set(meter.StreamHoldsFailed, g.sum.Failed)
}
