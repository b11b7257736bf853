package shard

import (
	"fmt"

	"taskledger/engine/internal/command"
	"taskledger/events"
	"taskledger/internal/message"
	"taskledger/projection"
)

// info tells of the committed state, also while an entry is under way.
func (o *Owner) info(c *command.Info) command.Answer {
	s := command.ShardReport{
		Owner:    o.ownership.Session.ID,
		Epoch:    o.ownership.Revision,
		Entries:  o.head.Number,
		Hash:     o.state.Hash[:],
		Time:     int64(o.state.Time),
		Tasks:    o.published.tasks.Load(),
		Live:     o.published.live.Load(),
		Refused:  o.published.refused.Load(),
		Bugs:     o.published.bugs.Load(),
		First:    o.trims.first.Load(),
		Archived: o.trims.archived.Load(),
		Degraded: o.degraded(),
		Began:    o.began,
		Drops:    o.cfg.Drops,
		Shards:   int64(o.cfg.Shards),
		Needs: command.ShardNeeds{
			Refuses: o.refuses(),
			Behind:  o.trims.behind.Load(),
			Losses:  int64(o.state.Losses()),
		},
	}
	s.Needs.Overdue, s.Needs.OverdueSince = o.overdue()
	s.Waits = o.waits.of(o.state, o.now())
	s.Behaviors, s.Figures = o.tally.Figures()
	for _, n := range *o.published.backlog.Load() {
		s.Ready += int64(n)
	}
	if c.Digest {
		digest := o.state.Digest(o.turns)
		s.Digest = digest[:]
	}
	if kept := o.snapshots.current().Kept; len(kept) > 0 {
		s.Snapshot = kept[0].Entry
	}
	return command.Answer{Data: message.Encode(&s)}
}

// degraded says what works no more; "" = everything does.
func (o *Owner) degraded() string {
	why := o.refuses()
	if live, limit := o.state.LiveBytes(), o.cfg.Admission.LiveLimit(); why == "" && limit > 0 && live >= limit-limit/8 {
		why = fmt.Sprintf("tasks of the shard take %d bytes, the store has room for %d: what would take more is refused",
			live, limit)
	}
	if problem := o.trims.problem.Load(); why == "" && problem != nil {
		why = "not trimmed: " + *problem
	}
	if problem := o.cfg.Archiver.Problem(); why == "" && problem != "" {
		why = "the archive does not keep everything: " + problem
	}
	if problem := o.snapshots.trouble(); why == "" && problem != "" {
		why = "no snapshot: " + problem
	}
	if late := o.trims.late.Load(); why == "" && late > 0 {
		why = fmt.Sprintf(
			"the archive begins late, with entry %d: what was before has no history until the archive is restored "+
				"from a backup; taskledger verify checks what there is",
			late,
		)
	}
	return why
}

// refuses says why the owner takes no new tasks; "" = it does.
func (o *Owner) refuses() string {
	if why := o.cfg.Admission.Refusal(); why != "" || !o.pending.full {
		return why
	}
	return command.StoreFull
}

// overdueAfter lets that much time pass after a time-out before the attempt is overdue: its node ends it before.
const overdueAfter events.Millis = 20 * 1000

// overdue counts the attempts that run on although their time-out is long over, as on a node that hangs, and returns
// when that of the first of them was over.
func (o *Owner) overdue() (n, since int64) {
	now := o.now()
	for t := range o.state.Attempts() {
		if t.Kind.Policy.Timeout <= 0 {
			continue
		}
		if over := t.StartedAt.Add(t.Kind.Policy.Timeout); now-over >= overdueAfter {
			if n++; since == 0 || int64(over) < since {
				since = int64(over)
			}
		}
	}
	return n, since
}

const (
	waitsLong    events.Millis = 60 * 1000 // a task that may start has waited for long after that time
	waitsCounted events.Millis = 2 * 1000  // so old may a count be
)

// waits keeps the last count of the tasks that may start and have waited for long.
type waits struct {
	told command.ShardWaits
	at   events.Millis // 0 = nothing was counted
}

// of returns the count as it is, or was a moment ago. It looks at the first task of each behavior, which is the oldest
// of its priority, and at so many others that a turn is not held up.
func (w *waits) of(state *projection.Shard, now events.Millis) command.ShardWaits {
	if w.at != 0 && now >= w.at && now-w.at < waitsCounted {
		return w.told
	}
	w.told, w.at = command.ShardWaits{}, now
	long := func(t *projection.Task) bool {
		_, since := t.Substatus(now)
		is := now-since >= waitsLong
		if is && (w.told.Since == 0 || int64(since) < w.told.Since) {
			w.told.Since = int64(since)
		}
		return is
	}
	for behavior := range state.Backlog() {
		long(state.Ready(behavior))
	}
	looked := 0
	for t := range state.Readies() {
		if looked++; looked > scanTasks {
			w.told.More = true
			break
		}
		if long(t) {
			w.told.Tasks++
		}
	}
	if w.told.Since != 0 {
		w.told.Tasks = max(w.told.Tasks, 1)
	}
	return w.told
}
