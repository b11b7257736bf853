package shard

import (
	"context"
	"sync/atomic"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/explanation"
	"taskledger/events"
	"taskledger/meter"
	"taskledger/projection"
)

// maxUnasked bounds the events that an extension may record in one entry without being asked.
const maxUnasked = 64

// extensions holds the extensions of an owner, with their alarms and the work that they have left to goroutines.
type extensions struct {
	all      []Extension
	alarms   []alarm
	tasks    alarm // of the tasks, beside those of extensions
	prepared []atomic.Pointer[preparation]
	unasked  scanBudget  // the time of one extension for what it records unasked
	late     func() bool // of unasked
	follows  []func(*command.Decider, *events.Event)
	setGauge func(g meter.Gauge, value int64)
}

// alarm makes things due as time goes by.
type alarm struct {
	next func() events.Millis
	ring func(now events.Millis) (moved bool)
}

// preparation is work that an extension has left to a goroutine.
type preparation struct {
	ready    bool
	prepared func()
}

// extend makes the extensions of an owner.
func (o *Owner) extend(all []NewExtension) {
	x := &o.extensions
	x.tasks = alarm{o.state.NextDue, o.state.MakeDue}
	x.setGauge = func(g meter.Gauge, value int64) { o.published.gauges[g].Store(value) }
	x.late = x.unasked.late
	x.prepared = make([]atomic.Pointer[preparation], len(all))
	for _, extend := range all {
		of := extend(o.state)
		x.all = append(x.all, of)
		if of.Follow != nil {
			x.follows = append(x.follows, of.Follow)
		}
		if of.NextDue != nil {
			x.alarms = append(x.alarms, alarm{of.NextDue, of.MakeDue})
		}
	}
}

// serveExtensions lets extensions know that the shard is about to be served.
func (o *Owner) serveExtensions() {
	for i := range o.extensions.all {
		if x := &o.extensions.all[i]; x.Served != nil {
			x.Served()
		}
	}
}

// ring makes due what is due by now. What was due stays so when the wall clock is set back.
func (o *Owner) ring(a alarm, now events.Millis, at time.Duration) {
	if a.ring(now) {
		o.clock.Hold(now, at)
	}
}

// ringExtensions makes due what extensions have. Tasks have an alarm of their own: it rings before questions, and
// once the commands of a turn are decided, and only while the session may start tasks.
func (o *Owner) ringExtensions(now events.Millis, at time.Duration) {
	for _, a := range o.extensions.alarms {
		o.ring(a, now, at)
	}
}

// nextAlarm returns when something is due next, 0 = never, and whether tasks are what it is.
func (o *Owner) nextAlarm() (due events.Millis, tasks bool) {
	due = o.state.NextDue()
	if at := o.starts.apart; at != 0 && (due == 0 || at < due) {
		due = at
	}
	tasks = due != 0
	for _, a := range o.extensions.alarms {
		if next := a.next(); next != 0 && (due == 0 || next < due) {
			due, tasks = next, false
		}
	}
	return due, tasks
}

// prepare lets extensions take what was prepared for them, and prepare what they need next.
func (o *Owner) prepare(now events.Millis) {
	for i := range o.extensions.all {
		x, slot := &o.extensions.all[i], &o.extensions.prepared[i]
		if x.Prepare == nil {
			continue
		}
		if under := slot.Load(); under != nil {
			if !under.ready {
				continue
			}
			if under.prepared != nil {
				under.prepared()
			}
			slot.Store(nil)
		}
		work := x.Prepare(now)
		if work == nil {
			continue
		}
		slot.Store(&preparation{})
		o.cfg.Host.Spawn(func(ctx context.Context) {
			slot.Store(&preparation{ready: true, prepared: work(ctx)})
			o.inbox.Wake()
		})
	}
}

// decideUnasked lets extensions record what nobody asked for, as long as the entry has room. The others have their
// turn with the next entry.
func (o *Owner) decideUnasked(d *command.Decider) {
	for i := range o.extensions.all {
		x := &o.extensions.all[i]
		switch {
		case x.Decide == nil || d.Err != nil:
		case d.EntryFull():
			o.inbox.Wake()
			return
		default:
			o.extensions.unasked = scanBudget{}
			x.Decide(d, command.Budget{Items: maxUnasked, Over: o.extensions.late})
		}
	}
}

// follow lets extensions record what follows an event.
func (o *Owner) follow(d *command.Decider, ev *events.Event) {
	for _, follow := range o.extensions.follows {
		follow(d, ev)
	}
}

// beside returns by node how many attempts run there from which fronts keep a task apart; nil = none does.
func (o *Owner) beside(t *projection.Task) map[string]int {
	for i := range o.extensions.all {
		if x := &o.extensions.all[i]; x.Beside != nil {
			if byNode := x.Beside(t); byNode != nil {
				return byNode
			}
		}
	}
	return nil
}

// complete lets extensions complete the answers to a batch.
func (o *Owner) complete(r *pendingReply) {
	for i := range o.extensions.all {
		if x := &o.extensions.all[i]; x.Complete != nil {
			r.answers = x.Complete(r.Commands, r.answers)
		}
	}
}

// performExtensions performs the effects of extensions.
func (o *Owner) performExtensions() {
	for i := range o.extensions.all {
		if x := &o.extensions.all[i]; x.Perform != nil {
			x.Perform()
		}
	}
}

// answerExtension answers a question of a front. All lists and questions of a turn share one budget: one that finds it
// used up is asked again, behind those that wait. What has to be proven is encoded after the proof.
func (o *Owner) answerExtension(
	c command.Command,
) (a command.Answer, read func(context.Context) command.Answer, is bool) {
	for i := range o.extensions.all {
		x := &o.extensions.all[i]
		if x.Answer == nil {
			continue
		}
		found, is := x.Answer(c, o.now(), command.Budget{Items: o.scan.tasks, Over: o.scan.late})
		if !is {
			continue
		}
		o.scan.took(found.Items, found.Bytes)
		if found.Linear {
			return command.Answer{}, o.proven(func(context.Context) command.Answer { return found.Answer() }), true
		}
		return found.Answer(), nil, true
	}
	return command.Answer{}, nil, false
}

// tellExtensions says what fronts know of a task, as the end of a text.
func (o *Owner) tellExtensions(t *projection.Task) (text string) {
	for i := range o.extensions.all {
		if x := &o.extensions.all[i]; x.Tell != nil {
			if more := x.Tell(t, o.now()); more != "" {
				text += "; " + more
			}
		}
	}
	return text
}

// explainExtensions explains why a task waits for a front.
func (o *Owner) explainExtensions(t *projection.Task) (explanation.Explanation, bool) {
	for i := range o.extensions.all {
		if x := &o.extensions.all[i]; x.Explain != nil {
			if e, waits := x.Explain(t); waits {
				return e, true
			}
		}
	}
	return explanation.Explanation{}, false
}

// explainRecord explains an id that no task has.
func (o *Owner) explainRecord(id events.TaskID) command.Answer {
	for i := range o.extensions.all {
		if x := &o.extensions.all[i]; x.ExplainRecord != nil {
			if e, is := x.ExplainRecord(id); is {
				return e.Answer()
			}
		}
	}
	return command.Answer{Code: command.AnswerNotFound}
}

// publishGauges shows the gauges of extensions.
func (o *Owner) publishGauges() {
	for i := range o.extensions.all {
		if x := &o.extensions.all[i]; x.Gauges != nil {
			x.Gauges(o.extensions.setGauge)
		}
	}
}
