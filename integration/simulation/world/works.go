package world

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"taskledger/events"
	"taskledger/integration/robustness/history"
	"taskledger/task"
)

// errand is a work, which somebody suspends, cancels, deletes or has go on meanwhile.
func (s *scenario) errand() {
	if s.w.dice.chance(0.5) {
		s.id += "/p"
	}
	o := order{id: s.id, behavior: pick(s.w.dice, walk, walk, limited, limited, alone), job: job{
		Work:    s.work(60),
		Changes: pick(s.w.dice, 0, mostChanges, 2*mostChanges),
		Breaks:  pick(s.w.dice, 0, 0, 0, 1, 4),
	}}
	s.submit(o)
	for range 1 + s.w.dice.n(3) {
		s.pause(1500 * time.Millisecond)
		pick(s.w.dice, (*scenario).stopAndGoOn, (*scenario).stopAndGoOn, (*scenario).endAndGoOn, (*scenario).disturbWorkers, (*scenario).disturbWorkers, (*scenario).leaveIt)(s)
	}
	s.attach(string(s.id))
	s.get(string(s.id))
	s.pause(2 * time.Second)
	switch s.w.dice.n(4) {
	case 0:
		s.submit(o) // it runs again
	case 1:
		s.rerun()
	case 2:
		s.goOn(pick(s.w.dice, true, true, false))
	}
	s.get(string(s.id))
}

// stopAndGoOn suspends the work for a while.
func (s *scenario) stopAndGoOn() {
	s.operate(history.Suspend, string(s.id))
	s.pause(time.Second)
	s.get(string(s.id))
	s.operate(history.Resume, string(s.id))
}

// endAndGoOn ends the work, and lets it go on or begin another life.
func (s *scenario) endAndGoOn() {
	s.operate(pick(s.w.dice, history.Cancel, history.Cancel, history.Delete), string(s.id))
	s.pause(700 * time.Millisecond)
	s.goOn(s.w.dice.chance(0.3))
}

// disturbWorkers cancels workers, as many as there are: others must take their buckets.
func (s *scenario) disturbWorkers() {
	for number := range uint32(1 + s.w.dice.n(4)) {
		worker := string(events.WorkerID(s.id, number+2))
		s.operate(pick(s.w.dice, history.Cancel, history.Cancel, history.RunNow), worker)
		s.pause(200 * time.Millisecond)
	}
}

func (s *scenario) leaveIt() { s.pause(time.Second) }

// goOn has the work run where it ended, with what was counted or without, or all of it.
func (s *scenario) goOn(thresholds bool) {
	p := s.client()
	ctx, cancel := context.WithTimeout(s.w.waitCtx, s.w.caller().timeout())
	_ = p.client.Operations().ResetWork(ctx, s.id, thresholds) // a work that runs is not reset
	cancel()
	s.operate(history.Retry, string(s.id))
}

// rerun runs the buckets again that had failed items. For the task that is a retry.
func (s *scenario) rerun() {
	c, p := s.w.caller(), s.client()
	op := history.Operation{Verb: history.Retry, Task: string(s.id)}
	c.do(p, op, c.timeout(), func(ctx context.Context, _ *history.Operation) error {
		err := p.client.Operations().RerunWork(ctx, s.id)
		if errors.Is(err, task.ErrNotFound) { // there is no such task, or no work of it
			return errNoAnswer
		}
		return err
	})
}

// stream is a stream of changes, which come before it runs and while it does. Somebody suspends, ends or deletes it, or has
// it begin elsewhere, and looks after what it holds.
func (s *scenario) stream() {
	if s.w.dice.chance(0.5) {
		s.id += "/p"
	}
	o := order{id: s.id, behavior: pick(s.w.dice, follow, rehearse, vague, updates, updates), job: job{
		Work:   s.work(40),
		Odd:    s.w.dice.n(3),
		Fails:  pick(s.w.dice, 0, 0, 1, 2, 4),
		Breaks: pick(s.w.dice, 0, 0, 0, 1, 4),
	}}
	feed := s.w.feeds.Make(string(s.id), o.behavior == updates)
	publish := func() { s.publish(feed, o.behavior == updates) }
	publish()
	s.submit(o)
	for range 1 + s.w.dice.n(3) {
		s.pause(1500 * time.Millisecond)
		publish()
		pick(s.w.dice, (*scenario).stopAndGoOn, (*scenario).stopAndGoOn, (*scenario).endAndGoOn, (*scenario).setToken, (*scenario).leaveIt, (*scenario).leaveIt)(s)
		if s.w.dice.chance(0.3) {
			feed.Disturb(s.w.dice.n(3))
		}
		s.lookAfterHolds()
	}
	s.attach(string(s.id))
	s.get(string(s.id))
	s.pause(2 * time.Second)
	s.submit(o) // it goes on with what has come since
	s.lookAfterHolds()
	s.get(string(s.id))
}

// publish adds changes, or messages of one or two.
func (s *scenario) publish(feed *changeLog, pushed bool) {
	key := func(of int) string { return fmt.Sprint("key-", of) }
	places := make([][]string, vagueGroup*(1+s.w.dice.n(8)))
	for i := range places {
		one := pick(s.w.dice, 0, 0, s.w.dice.n(6))
		places[i] = []string{key(one)}
		if pushed && s.w.dice.chance(0.2) {
			places[i] = append(places[i], key(one+1))
		}
	}
	feed.Publish(s.w.record.Now(), places)
}

// lookAfterHolds resumes, runs again or deletes what the stream may hold.
func (s *scenario) lookAfterHolds() {
	for number := range uint32(s.w.dice.n(4)) {
		hold := string(events.HoldID(s.id, number+1))
		s.operate(pick(s.w.dice, history.Resume, history.Resume, history.Resume, history.Retry, history.Delete, history.RunNow), hold)
		s.pause(300 * time.Millisecond)
	}
}

// setToken suspends the stream and has it begin elsewhere.
func (s *scenario) setToken() {
	s.operate(history.Suspend, string(s.id))
	s.pause(500 * time.Millisecond)
	p := s.client()
	ctx, cancel := context.WithTimeout(s.w.waitCtx, s.w.caller().timeout())
	token := strconv.Itoa(vagueGroup * s.w.dice.n(6))
	if token == "0" {
		token = ""
	}
	_ = p.client.Operations().SetWorkToken(ctx, s.id, token, "as planned") // one that runs, or has no token, has none set
	cancel()
	s.operate(history.Resume, string(s.id))
}
