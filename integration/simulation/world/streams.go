package world

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"taskledger/events"
	"taskledger/integration/robustness/history"
	"taskledger/integration/simulation/work"
)

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
func (s *scenario) publish(feed *work.Feed, pushed bool) {
	key := func(of int) string { return fmt.Sprint("key-", of) }
	places := make([][]string, work.Group*(1+s.w.dice.n(8)))
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
	ctx, cancel := context.WithTimeout(s.w.patient, s.w.caller().patience())
	token := strconv.Itoa(work.Group * s.w.dice.n(6))
	if token == "0" {
		token = ""
	}
	_ = p.client.Operations().SetWorkToken(ctx, s.id, token, "as planned") // one that runs, or has no token, has none set
	cancel()
	s.operate(history.Resume, string(s.id))
}
