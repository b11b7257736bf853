package check_test

import (
	"slices"
	"strings"
	"testing"

	"taskledger/events"
	"taskledger/integration/robustness/check"
	"taskledger/integration/robustness/history"
)

// aStream builds the history of a stream with five changes of two keys, the third of which is held.
type aStream struct {
	*builder
}

type streamStep struct {
	name string
	do   func(*aStream)
}

const (
	streamTask = "a"
	holdTask   = "a/h1"
)

// visit has an attempt of a task done with a change.
func visit(by string, place uint64, key string) func(*aStream) {
	return func(s *aStream) {
		s.run.Visits = append(s.run.Visits, history.Visit{
			Task:  streamTask,
			By:    by,
			Token: events.Position{Shard: uint16(events.TaskID(by).Shard(shards)), Ref: s.track(by).started},
			Place: place,
			Key:   key,
			At:    s.tick(),
		})
	}
}

// record commits an entry with an event of the stream's task.
func record(body func(s *aStream) events.Body) func(*aStream) {
	return func(s *aStream) {
		s.timed()
		s.add(streamTask, body(s))
	}
}

// timed has the next entry tell when it was committed.
func (s *aStream) timed() {
	at := s.tick()
	s.builder.record = func(r *history.Record) { r.At = at }
}

func tokenTo(token string) func(*aStream) {
	return record(func(s *aStream) events.Body {
		return &events.TokenMoved{Attempt: s.track(streamTask).started, Token: token}
	})
}

func (s *aStream) begin() { s.beginAs("work") }

// beginAs begins a stream of a behavior.
func (s *aStream) beginAs(behavior string) {
	s.timed()
	made := s.created()
	made.Behavior = behavior
	s.add(streamTask, made)
	s.timed()
	s.start(streamTask, "n-1")
	for _, body := range []events.Body{
		&events.WorkPlanned{Run: 1, Partitions: []events.WorkPartition{
			{ID: "do", Buckets: 1, Workers: 1, Threads: 2, Form: events.FormPrecise},
		}},
		&events.PartitionStarted{Partition: 1},
		&events.BucketsMoved{Worker: 1, Attempt: s.track(streamTask).started, Started: 1},
	} {
		record(func(*aStream) events.Body { return body })(s)
	}
}

// holdThird holds the third change, and passes it.
func (s *aStream) holdThird() { s.hold("3", "x", events.ItemCounts{}) }

// hold begins the hold of a change, and has the token pass that.
func (s *aStream) hold(at, key string, counts events.ItemCounts) {
	of := s.track(streamTask).started
	made := s.created()
	made.Ties = events.Ties{Parent: streamTask, Group: streamTask, By: "ada"}
	made.Params = events.JSON([]byte(`{"hold_of":"a","hold":1}`))
	s.timed()
	s.commit(events.TaskID(streamTask).Shard(shards), []events.Body{
		&events.ChangeHeld{Attempt: of, Hold: 1, Partition: 1, Key: key, At: at, Data: []byte("{}"), Code: "later"},
		made,
		&events.TokenMoved{Attempt: of, Token: at, Items: counts},
	}, func(body events.Body) (*tracked, events.TaskID) {
		if body == events.Body(made) {
			return s.track(holdTask), holdTask
		}
		return s.track(streamTask), streamTask
	})
	s.now += 10
	s.timed()
	s.start(holdTask, "n-1")
}

// lose loses the attempt, and begins another one, which does not have the bucket yet.
func (s *aStream) lose() {
	of := s.track(streamTask).started
	s.timed()
	s.add(streamTask, &events.Lost{Until: s.now + 1}, &events.BucketsMoved{
		Worker:   1,
		Attempt:  of,
		Returned: 1,
		Cause:    events.ReturnedLost,
	})
	s.now += 10
	s.timed()
	s.start(streamTask, "n-2")
}

// again loses the attempt, and begins another one.
func (s *aStream) again() {
	s.lose()
	record(func(s *aStream) events.Body {
		return &events.BucketsMoved{Worker: 1, Attempt: s.track(streamTask).started, Started: 1}
	})(s)
}

// soundStream is a history in which everything is right.
func soundStream() []streamStep {
	return []streamStep{
		{"begin", (*aStream).begin},
		{"first", visit(streamTask, 1, "x")},
		{"second", visit(streamTask, 2, "y")},
		{"hold", (*aStream).holdThird},
		{"third", visit(holdTask, 3, "x")},
		{"ended", record(func(*aStream) events.Body { return &events.HoldMoved{Hold: 1, Done: 1, Ended: true} })},
		{"fourth", visit(streamTask, 4, "y")},
		{"fifth", visit(streamTask, 5, "x")},
		{"again", (*aStream).again},
		{"fourth again", visit(streamTask, 4, "y")},
		{"fifth again", visit(streamTask, 5, "x")},
		{"token", tokenTo("5")},
		{"end", func(s *aStream) {
			s.timed()
			s.add(streamTask, &events.BucketsMoved{
				Worker:  1,
				Attempt: s.track(streamTask).started,
				Ended:   1,
			}, &events.PartitionEnded{Partition: 1})
		}},
	}
}

// accusations makes the history of the steps, and returns what is said of its stream.
func accusations(t *testing.T, steps []streamStep) (all []string) {
	s := &aStream{builder: newBuilder(t)}
	s.run.Feeds = []history.Feed{{
		Task:      streamTask,
		Keys:      [][]string{{"x"}, {"y"}, {"x"}, {"y"}, {"x"}},
		Published: []int64{1, 1, 1, 1, 1},
	}}
	for _, step := range steps {
		step.do(s)
	}
	for _, v := range check.All(s.finish()) {
		if v.Task == streamTask && (strings.Contains(v.Text, "change ") || strings.Contains(v.Text, "token passes")) {
			all = append(all, v.Text)
		}
	}
	return all
}

func TestStreams_OfASoundHistoryAreNotAccused(t *testing.T) {
	if all := accusations(t, soundStream()); len(all) > 0 {
		t.Error(all)
	}
}

func TestStreams_ThatBreakAPromiseAreAccused(t *testing.T) {
	for _, c := range []struct {
		name    string
		without string
		before  string // the step before which another one comes
		other   func(*aStream)
		text    string
	}{
		{"a token passes an open change", "second", "", nil, "the token passes change 2 of key \"y\""},
		{"a token passes what another attempt did", "fourth again", "", nil, "the token passes change 4 of key \"y\""},
		{"a held change is overtaken", "", "third", visit(streamTask, 5, "x"), "change 5 of key \"x\" is processed by a before change 3"},
		{"a held change is forgotten", "third", "", nil, "change 3 of key \"x\" leaves hold 1"},
		{"one attempt goes back", "", "again", visit(streamTask, 4, "y"), "is processed after change 4, by one attempt"},
		{"what a token has passed comes again", "", "token", visit(streamTask, 2, "y"), "the token was at 3 when the attempt began"},
		{"a run ends too early", "token", "", nil, "the last partition ends with the token at 3, and change 4 was there"},
	} {
		steps := slices.DeleteFunc(soundStream(), func(s streamStep) bool { return s.name == c.without })
		if at := slices.IndexFunc(steps, func(s streamStep) bool { return s.name == c.before }); at >= 0 {
			steps = slices.Insert(steps, at, streamStep{c.name, c.other})
		}
		all := accusations(t, steps)
		if !slices.ContainsFunc(all, func(text string) bool { return strings.Contains(text, c.text) }) {
			t.Errorf("%s: %q", c.name, all)
		}
	}
}

// The changes 2 and 3 of a brook have one key, and 4 has another one.
func TestBrooks_TokensPassWhatCountsAndWhatFollowsIntoItsHold(t *testing.T) {
	type steps []func(*aStream)
	moves := func(token string, done, skipped uint64) func(*aStream) {
		return record(func(s *aStream) events.Body {
			return &events.TokenMoved{
				Attempt: s.track(streamTask).started,
				Token:   token,
				Items:   events.ItemCounts{Done: done, Skipped: skipped},
			}
		})
	}
	holds := func(s *aStream) { s.hold("2", history.BrookKey(2), events.ItemCounts{Failed: 1}) }
	follows := record(func(s *aStream) events.Body {
		return &events.ChangeHeld{
			Attempt:   s.track(streamTask).started,
			Hold:      1,
			Partition: 1,
			Key:       history.BrookKey(3),
			At:        "3",
			Data:      []byte("{}"),
		}
	})
	ends := record(func(*aStream) events.Body { return &events.HoldMoved{Hold: 1, Done: 1, Ended: true} })
	for name, c := range map[string]struct {
		steps
		text string // "" = it is sound
	}{
		"sound":         {steps{moves("1", 1, 0), holds, follows, moves("4", 1, 1)}, ""},
		"a hold ends":   {steps{moves("1", 1, 0), holds, ends, moves("4", 2, 0)}, ""},
		"one is open":   {steps{moves("1", 1, 0), moves("4", 2, 0)}, "moves from 1 to 4, and 2 changes count"},
		"it goes back":  {steps{moves("2", 2, 0), moves("1", 0, 0)}, "moves from 2 to 1"},
		"one overtakes": {steps{moves("1", 1, 0), holds, moves("3", 1, 0)}, "passes change 3 of key \"4\", which hold 1 has not taken"},
	} {
		s := &aStream{builder: newBuilder(t)}
		s.beginAs(history.Brook)
		for _, step := range c.steps {
			step(s)
		}
		var all []string
		for _, v := range check.All(s.finish()) {
			if strings.Contains(v.Text, "the token ") {
				all = append(all, v.Text)
			}
		}
		if c.text == "" && len(all) > 0 || c.text != "" && !strings.Contains(strings.Join(all, "; "), c.text) {
			t.Errorf("%s: %q, want %q", name, all, c.text)
		}
	}
}

// While the stream's own task waits for long after a loss a worker has the stream.
func TestStreams_OfWhichAWorkerHasTheRestAreJudgedByWhatThatDoes(t *testing.T) {
	const worker = "a/w2"
	takeOver := func(s *aStream) {
		s.lose()
		s.timed()
		s.add(streamTask, &events.Snoozed{Until: s.now + 5000})
		made := s.created()
		made.Ties = events.Ties{Parent: streamTask, Group: streamTask, By: "ada"}
		made.Params = events.JSON([]byte(`{"worker_of":"a"}`))
		s.timed()
		s.add(worker, made)
		s.now += 10
		s.timed()
		s.start(worker, "n-1")
		record(func(s *aStream) events.Body {
			return &events.BucketsMoved{Worker: 2, Attempt: s.track(worker).started, Started: 1}
		})(s)
	}
	token := record(func(s *aStream) events.Body {
		return &events.TokenMoved{Attempt: s.track(worker).started, Token: "5"}
	})
	for _, by := range []string{worker, streamTask} {
		steps := soundStream()
		steps = steps[:slices.IndexFunc(steps, func(s streamStep) bool { return s.name == "again" })]
		all := accusations(t, append(steps,
			streamStep{"a worker begins", takeOver},
			streamStep{"fourth again", visit(by, 4, "y")},
			streamStep{"fifth again", visit(worker, 5, "x")},
			streamStep{"token", token},
		))
		told := strings.Join(all, "; ")
		if accused := strings.Contains(told, "the token passes change 4 of key \"y\""); accused != (by != worker) || by == worker && told != "" {
			t.Errorf("what %s does: %q", by, told)
		}
	}
}

// What an attempt does that is over counts as nothing: another one has it again.
func TestStreams_AnAttemptThatIsOverMayBeLate(t *testing.T) {
	steps := soundStream()
	at := slices.IndexFunc(steps, func(s streamStep) bool { return s.name == "again" })
	var late events.Ref
	steps = slices.Insert(steps, at, streamStep{"keep", func(s *aStream) { late = s.track(streamTask).started }})
	steps = slices.Insert(steps, at+3, streamStep{"late", func(s *aStream) {
		visit(streamTask, 2, "y")(s)
		s.run.Visits[len(s.run.Visits)-1].Token.Ref = late
	}})
	if all := accusations(t, steps); len(all) > 0 {
		t.Error(all)
	}
}

func TestStreams_AMessageIsAcknowledgedOnceItsChangesAreDone(t *testing.T) {
	const visited = "visited"
	for _, other := range []string{visited, "", "1@hgw4k3f", "1.1@hgw4k3f"} { // or the name by which it is held
		s := &aStream{builder: newBuilder(t)}
		s.run.Feeds = []history.Feed{{Task: streamTask, Pushed: true, Keys: [][]string{{"x", "y"}}}}
		s.begin()
		visit(streamTask, 1, "x")(s)
		done := other != ""
		switch other {
		case "":
		case visited:
			visit(streamTask, 1, "y")(s)
		default:
			s.hold(other, "y", events.ItemCounts{})
		}
		visit(streamTask, 1, "")(s)
		accused := slices.ContainsFunc(check.All(s.finish()), func(v check.Violation) bool {
			return strings.Contains(v.Text, "message 1 is acknowledged, and its change of key \"y\" was neither processed nor held")
		})
		if accused == done {
			t.Errorf("%q: accused %t", other, accused)
		}
	}
}

// A hold has the number of one of an earlier life, and so its task may be parked after somebody resumed the one before.
func TestStreams_AResumeIsOfTheLifeOfAHold(t *testing.T) {
	for _, again := range []bool{true, false} {
		s := &aStream{builder: newBuilder(t)}
		s.begin()
		s.holdThird()
		o := s.op(history.Operation{Verb: history.Resume, Task: holdTask}, func() {
			s.timed()
			s.add(holdTask, &events.Suspended{})
		})
		if again {
			o.Call, o.Return = 1, 2
		}
		accused := slices.ContainsFunc(check.All(s.finish()), func(v check.Violation) bool {
			return strings.Contains(v.Text, "a resume was acknowledged, nobody suspended again")
		})
		if accused == again {
			t.Errorf("made after the resume: %t, accused %t", again, accused)
		}
	}
}
