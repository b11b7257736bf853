package schedules

import (
	"context"
	"fmt"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/shard"
	"taskledger/engine/internal/tally"
	"taskledger/events"
	"taskledger/meter"
	"taskledger/projection"
	"taskledger/projection/schedules"
	"taskledger/schedule"
)

const (
	// askedAtOnce bounds the schedules whose ticks are found in one preparation: a tick takes 20 µs, a hundred of one
	// that was not decided for long some milliseconds.
	askedAtOnce = 64
	// askAgain puts off the search for ticks of a schedule whose zone is not known here.
	askAgain events.Millis = 60_000
	// eventsAStep counts the events that a step records: a decision, and the run that it creates. The events of runs
	// that are to end come on top.
	eventsAStep = 2
	// tryAgain puts off what is due while there is no room.
	tryAgain events.Millis = 1000
)

// atOwner is the extension of the owner of a shard.
type atOwner struct {
	state *projection.Shard
	all   *schedules.Schedules
	node  string // of the owner, for whoever asks why
	zones func(name string) (*time.Location, error)

	ahead   map[string]*schedules.Ahead
	asking  map[string]struct{} // schedules whose ticks are to be found
	finding bool                // a preparation is under way
	trusted map[string]struct{} // those whose next tick was found, or looked at, by this owner
	fresh   map[string]struct{} // those whose next tick was looked at, and not compared yet
	unknown map[string]unknown  // those whose ticks cannot be found here
	barred  string              // why nothing is decided; "" = something may be
	retry   events.Millis       // when what is due is tried again; 0 = it need not be
}

// unknown says why ticks cannot be found, and when they are looked for again.
type unknown struct {
	why   string
	again events.Millis
}

// AtOwner returns the extension of owners on a node, which has its data of time zones from zones.
func AtOwner(node string, zones func(name string) (*time.Location, error)) shard.NewExtension {
	return func(state *projection.Shard) shard.Extension {
		o := &atOwner{
			state:   state,
			all:     schedules.Of(state),
			node:    node,
			zones:   zones,
			ahead:   map[string]*schedules.Ahead{},
			asking:  map[string]struct{}{},
			trusted: map[string]struct{}{},
			fresh:   map[string]struct{}{},
			unknown: map[string]unknown{},
		}
		return shard.Extension{
			Served:  o.served,
			NextDue: o.nextDue,
			MakeDue: o.makeDue,
			Prepare: o.prepare,
			Decide:  o.decide,
			Note:    o.note,
			Count:   o.count,
			Answer:  o.answer,
			Gauges:  o.gauges,

			ExplainRecord: o.explain,
		}
	}
}

func (o *atOwner) gauges(set func(meter.Gauge, int64)) {
	set(meter.Schedules, int64(o.all.Len()))
	set(meter.SchedulesDue, int64(o.all.Undecided()))
}

// served has the ticks of all schedules found.
func (o *atOwner) served() {
	o.all.All(func(s *schedules.Schedule) bool {
		o.asking[s.Name] = struct{}{}
		return true
	})
}

// note has the next tick found of a schedule that has changed.
func (o *atOwner) note(ev *events.Event) {
	if ev.Kind().Record() != events.OfSchedule {
		return
	}
	name := ev.Task.Affinity()
	if events.DefinitionIn(ev.Body) != nil {
		delete(o.unknown, name)
		o.trusted[name] = struct{}{}
	}
	if _, ended := ev.Body.(*events.ScheduleEnded); ended {
		delete(o.ahead, name)
		delete(o.asking, name)
		delete(o.trusted, name)
		delete(o.fresh, name)
		delete(o.unknown, name)
		return
	}
	o.asking[name] = struct{}{}
}

// count counts decisions about ticks.
func (o *atOwner) count(ev *events.Event, to *tally.Tally) {
	b, is := ev.Body.(*events.Ticked)
	if !is {
		return
	}
	switch b.Decision {
	case events.TickCreated:
		to.Add(meter.TicksDecided, 1)
		if s := o.all.Schedule(ev.Task.Affinity()); s != nil {
			to.Took(meter.TickLateness, ev.At-b.From-s.Delay())
		}
	case events.TickSkipped:
		to.Add(meter.TicksDecided, 1)
		to.Add(meter.TicksSkipped, 1)
	case events.TickMissed:
		to.Add(meter.TicksDecided, 1)
		to.Add(meter.TicksMissed, 1)
	}
}

func (o *atOwner) nextDue() events.Millis {
	if len(o.asking) > 0 && !o.finding {
		return 1
	}
	due := o.all.NextDue()
	if o.retry != 0 && (due == 0 || o.retry < due) {
		return o.retry
	}
	return due
}

// makeDue makes schedules due once their time has come, and asks for the ticks of those whose zone was not known.
func (o *atOwner) makeDue(now events.Millis) (moved bool) {
	if o.retry != 0 && o.retry <= now {
		o.retry = 0
		for name, is := range o.unknown {
			if is.again <= now {
				o.asking[name] = struct{}{}
				delete(o.unknown, name)
			}
		}
		o.tryAt(now)
	}
	return o.all.MakeDue(now)
}

// tryAt notes when schedules whose zone is not known are asked for again.
func (o *atOwner) tryAt(now events.Millis) {
	for _, is := range o.unknown {
		o.retryAt(max(is.again, now+1))
	}
}

func (o *atOwner) retryAt(at events.Millis) {
	if o.retry == 0 || at < o.retry {
		o.retry = at
	}
}

// answered holds what was found for a question.
type answered struct {
	ahead *schedules.Ahead
	name  string
	zone  string
	err   error
}

// prepare finds the ticks of schedules beside the turns.
func (o *atOwner) prepare(now events.Millis) func(context.Context) func() {
	var questions []schedules.Question
	for name := range o.asking {
		if len(questions) == askedAtOnce {
			break
		}
		delete(o.asking, name)
		s := o.all.Schedule(name)
		if s == nil || s.Plan.Cron == "" && s.Fill == nil || o.ahead[name].Fits(s, now) {
			continue
		}
		_, trusted := o.trusted[name]
		questions = append(questions, s.Question(now, !trusted))
	}
	if len(questions) == 0 {
		return nil
	}
	o.finding = true
	return func(ctx context.Context) func() {
		var found []answered
		for _, q := range questions {
			if ctx.Err() != nil {
				break
			}
			ticks, err := schedule.TicksIn(&q.Plan, o.zones)
			a := answered{name: q.Name, zone: q.Plan.Zone, err: err}
			if err == nil {
				a.ahead = schedules.Find(q, ticks)
			}
			found = append(found, a)
		}
		return func() {
			o.finding = false
			o.take(found, now)
		}
	}
}

// take takes what was found.
func (o *atOwner) take(found []answered, now events.Millis) {
	for _, a := range found {
		s := o.all.Schedule(a.name)
		if s == nil {
			continue
		}
		if s.Plan.Zone != a.zone { // it was set anew meanwhile
			o.asking[a.name] = struct{}{}
			continue
		}
		if a.err != nil {
			o.unknown[a.name] = unknown{
				why:   fmt.Sprintf("node %s, which decides its ticks, cannot find them: %v", o.node, a.err),
				again: now + askAgain,
			}
			delete(o.ahead, a.name)
			o.retryAt(now + askAgain)
			continue
		}
		o.ahead[a.name] = a.ahead
		if _, trusted := o.trusted[a.name]; !trusted {
			o.fresh[a.name] = struct{}{}
		}
	}
}

// decide decides the ticks that are due.
func (o *atOwner) decide(d *command.Decider, b command.Budget) {
	o.correct(d)
	o.barred = ""
	if o.all.Undecided() == 0 {
		return
	}
	if o.barred = o.bars(d); o.barred != "" {
		o.retryAt(d.Now + tryAgain)
		return
	}
	steps := 0
	spent := func() bool {
		return eventsAStep*(steps+1) > b.Items || d.EntryFull() || d.Err != nil || steps > 0 && b.Over()
	}
	for _, s := range o.all.Due() {
		for !spent() {
			steps++
			if !o.step(d, s) {
				break
			}
		}
		if spent() {
			o.retryAt(d.Now + 1)
			return
		}
	}
}

// bars says why no tick can be decided.
func (o *atOwner) bars(d *command.Decider) string {
	if !d.MayRecord(events.KindBackfillEnded) {
		return "a node is present that cannot read the events of schedules, or the store is full"
	}
	if refusal, refused := d.MayCreate(events.MaxScheduleParamBytes); refused {
		return refusal.Text
	}
	return ""
}

// correct corrects the next ticks that other owners have found.
func (o *atOwner) correct(d *command.Decider) {
	for name := range o.fresh {
		if d.EntryFull() || d.Err != nil || !d.MayRecord(events.KindTicked) {
			return
		}
		delete(o.fresh, name)
		s, a := o.all.Schedule(name), o.ahead[name]
		if s == nil || !a.Fits(s, d.Now) {
			continue
		}
		o.trusted[name] = struct{}{}
		if body := a.Correct(s, d.Now); body != nil {
			emit(d, name, s, body)
		}
	}
}

// step records what is next of a schedule that is due; false = nothing is before something changes.
func (o *atOwner) step(d *command.Decider, s *schedules.Schedule) bool {
	name := s.Name
	if s = o.all.Schedule(name); s == nil {
		return false
	}
	a := o.ahead[name]
	if !a.Fits(s, d.Now) {
		if _, is := o.unknown[name]; !is {
			o.asking[name] = struct{}{}
		}
		return false
	}
	next, is := o.all.Decide(s, a, d.Now, func(id events.TaskID) bool { return o.state.Task(id) != nil })
	if !is {
		return false
	}
	for _, id := range next.Cancel {
		d.Cancel(o.state.Task(id), "a newer tick of schedule "+name+" replaces it")
	}
	if next.Body == nil {
		return false
	}
	run := s.Run(d.Now, next.Of)
	emit(d, name, s, next.Body)
	if next.Create != "" && d.Err == nil {
		d.Create(next.Create, run)
	}
	return d.Err == nil
}

// why says why a tick that is due is not decided; "" = none is.
func (o *atOwner) why(s *schedules.Schedule) string {
	if is, there := o.unknown[s.Name]; there {
		return is.why
	}
	if o.all.Waiting(s.Name) {
		return o.barred
	}
	return o.catchesUp(s)
}

// answer answers a question about schedules.
func (o *atOwner) answer(c command.Command, now events.Millis, b command.Budget) (command.Found, bool) {
	switch c := c.(type) {
	case *Get:
		return c.find(o.all, now, o.why), true
	case *List:
		if b.Spent() {
			return command.Found{Answer: command.TryAgain}, true
		}
		return c.find(o.all, o.why), true
	}
	return command.Found{}, false
}
