package check

import (
	"slices"

	"taskledger/events"
	"taskledger/integration/robustness/history"
)

// checkStreams holds what the functions of streams did against what their journals say: changes of a key are processed
// in their order, also where some of them are held, a token passes no change that is open, nothing is processed again
// that it has passed, and a message is acknowledged once its changes are done or held.
func (c *checker) checkStreams() {
	visits := map[string][]*history.Visit{}
	for i := range c.run.Visits {
		v := &c.run.Visits[i]
		visits[v.Task] = append(visits[v.Task], v)
	}
	for i := range c.run.Feeds {
		f := &c.run.Feeds[i]
		t := c.task(f.Task)
		if !t.known() || t.shard.works.Unknown(events.TaskID(t.id)) {
			continue
		}
		s := &stream{
			checker:  c,
			task:     t,
			feed:     f,
			life:     newStreamLife(),
			attempts: map[events.Ref]*streamAttempt{},
			visits:   visits[f.Task],
		}
		s.judge()
	}
}

// judge goes through the journal, and through what was done until each of its entries.
func (s *stream) judge() {
	for _, e := range s.task.shard.entries {
		if e.at == 0 {
			return // nobody knows what was done before it
		}
		for i := range e.Events {
			ev := &e.Events[i]
			number := events.HoldNumber(events.TaskID(s.task.id), ev.Task)
			worker := events.WorkerNumber(events.TaskID(s.task.id), ev.Task) // 1 = the stream's own task
			if number == 0 && worker == 0 {
				continue
			}
			for len(s.visits) > 0 && s.visits[0].At <= e.at {
				s.visit(s.visits[0])
				s.visits = s.visits[1:]
			}
			if s.task.broken || !s.checker.task(string(ev.Task)).known() {
				return
			}
			s.leave(ev)
			switch {
			case number != 0:
				s.applyHold(ev, number)
			case worker > 1:
				s.applyWorker(ev)
			default:
				s.apply(ev, e)
			}
		}
	}
	for _, v := range s.visits {
		s.visit(v)
	}
}

// apply takes over an event of the stream's task.
func (s *stream) apply(ev *events.Event, e *entry) {
	switch b := ev.Body.(type) {
	case *events.Created:
		if !s.feed.Pushed {
			s.life = newStreamLife()
		}
	case *events.Deleted:
		for _, h := range s.life.holds {
			s.life.excuse(h.changes...)
		}
		clear(s.life.holds)
	case *events.Started:
		s.begin(ev, nil)
	case *events.WorkPlanned:
		s.life.planned, s.life.partitions = e.at, len(b.Partitions)
	case *events.PartitionEnded:
		if int(b.Partition) == s.life.partitions {
			s.endRun(e)
		}
	case *events.TokenMoved:
		if b.Token != "" && !b.Simulated {
			s.moveToken(s.placeOf(b.Token), s.attempts[b.Attempt], e)
		}
	case *events.WorkReset:
		if b.What == events.ResetToken {
			s.life.token = s.placeOf(b.Token)
			for place := uint64(1); place <= s.life.token; place++ {
				s.life.excuse(s.changesAt(place)...)
			}
		}
	case *events.ChangeHeld:
		s.hold(b)
	case *events.HoldMoved:
		s.moveHold(b, e)
	}
}

// applyHold takes over an event of the task of a hold.
func (s *stream) applyHold(ev *events.Event, number uint32) {
	h := s.life.holds[number]
	switch ev.Body.(type) {
	case *events.Started:
		s.begin(ev, h)
	case *events.Deleted:
		if h != nil {
			s.life.excuse(h.changes...)
			delete(s.life.holds, number)
		}
	}
}

// applyWorker takes over an event of a worker: one has the stream while the stream's own task waits for long after a
// loss.
func (s *stream) applyWorker(ev *events.Event) {
	if _, is := ev.Body.(*events.Started); is {
		s.begin(ev, nil)
	}
}

// begin begins an attempt.
func (s *stream) begin(ev *events.Event, of *streamHold) {
	s.attempts[ev.Position.Ref] = &streamAttempt{
		by:      string(ev.Task),
		life:    s.life,
		hold:    of,
		token:   s.life.token,
		entry:   ev.Position.Ref.Entry(),
		visited: map[change]bool{},
	}
}

// leave ends the attempt of a task that an event takes off its node: after that it counts as nothing what it does.
func (s *stream) leave(ev *events.Event) {
	switch ev.Body.(type) {
	case *events.Succeeded, *events.Failed, *events.Snoozed, *events.Lost, *events.Released, *events.Created:
		for _, a := range s.attempts {
			a.over = a.over || a.by == string(ev.Task)
		}
	}
}

// moveToken holds that each change that a token passes was done by the attempt that moves it, or is held. nil = no task
// of the stream has that attempt.
func (s *stream) moveToken(token uint64, by *streamAttempt, e *entry) {
	if by == nil {
		s.accuse(effects, s.task, e.Number, "the token moves to %d by an attempt that is none of the stream", token)
		return
	}
	for place := s.life.token + 1; place <= token; place++ {
		for _, is := range s.changesAt(place) {
			if !by.visited[is] && !s.life.held[is] {
				s.accuse(effects, s.task, e.Number, "the token passes change %d of key %q, which attempt %d has not processed, and which is not held",
					place, is.key, by.entry)
			}
		}
	}
	s.life.token = token
}

// hold notes a change that is held.
func (s *stream) hold(b *events.ChangeHeld) {
	h := s.life.holds[b.Hold]
	if h == nil {
		h = &streamHold{visits: map[change]int{}}
		s.life.holds[b.Hold] = h
	}
	is := change{heldPlace(b), b.Key}
	h.changes = append(h.changes, is)
	s.life.held[is] = true
	if b.Passed {
		s.life.excuse(is)
	}
}

// moveHold holds that changes which are held no more were processed by the task of the hold.
func (s *stream) moveHold(b *events.HoldMoved, e *entry) {
	h := s.life.holds[b.Hold]
	if h == nil || int(b.Done) > len(h.changes) {
		return // which the fold of works tells
	}
	for _, is := range h.changes[:b.Done] {
		if h.visits[is] == 0 {
			s.accuse(effects, s.task, e.Number, "change %d of key %q leaves hold %d, whose task has not processed it", is.place, is.key, b.Hold)
		}
		h.visits[is]--
	}
	if h.changes = slices.Clone(h.changes[b.Done:]); b.Ended {
		delete(s.life.holds, b.Hold)
	}
}

// endRun holds that the last partition of a stream that fetches its changes has come as far as there were any when its run
// was planned.
func (s *stream) endRun(e *entry) {
	for i, at := range s.feed.Published {
		if place := uint64(i) + 1; !s.feed.Pushed && at < s.life.planned && place > s.life.token {
			s.accuse(effects, s.task, e.Number, "the last partition ends with the token at %d, and change %d was there before it", s.life.token, place)
			return
		}
	}
}

// visit judges what an attempt did.
func (s *stream) visit(v *history.Visit) {
	a := s.attempts[v.Token.Ref]
	if a == nil || a.life != s.life {
		return // of another life; what was never started is told by the calls
	}
	if v.Key == "" {
		s.acknowledge(v, a)
		return
	}
	is := change{v.Place, v.Key}
	if !a.over {
		s.judgeVisit(v, is, a)
		a.visited[is], s.life.last[v.Key] = true, v
	}
	s.life.visited[is] = true
	if a.hold != nil {
		a.hold.visits[is]++
	}
}

// judgeVisit holds that a change has overtaken none of its key, and that neither the token nor the attempt has passed it.
func (s *stream) judgeVisit(v *history.Visit, is change, a *streamAttempt) {
	for _, earlier := range s.placesOf(v.Key) {
		before := change{earlier, v.Key}
		if earlier < v.Place && !s.life.visited[before] && !s.life.excused[before] {
			s.accuse(effects, s.task, a.entry, "change %d of key %q is processed by %s before change %d, which nobody has processed",
				v.Place, v.Key, v.By, earlier)
		}
	}
	if a.hold != nil {
		return // it may have once more what came again
	}
	if !s.feed.Pushed && v.Place <= a.token {
		s.accuse(effects, s.task, a.entry, "change %d of key %q is processed, and the token was at %d when the attempt began", v.Place, v.Key, a.token)
	}
	if last := s.life.last[v.Key]; last != nil && last.Token == v.Token && last.Place >= v.Place {
		s.accuse(effects, s.task, a.entry, "change %d of key %q is processed after change %d, by one attempt", v.Place, v.Key, last.Place)
	}
}

// acknowledge holds that the changes of a message were done, or are held, before it is acknowledged.
func (s *stream) acknowledge(v *history.Visit, a *streamAttempt) {
	for _, is := range s.changesAt(v.Place) {
		if !s.life.visited[is] && !s.life.held[is] {
			s.accuse(effects, s.task, a.entry, "message %d is acknowledged, and its change of key %q was neither processed nor held", v.Place, is.key)
		}
	}
}
