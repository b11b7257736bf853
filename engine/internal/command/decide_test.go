package command

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"taskledger/events"
	"taskledger/projection"
)

func TestSubmit_OnAnExistingTask(t *testing.T) {
	now, later := 0*time.Second, time.Hour
	for _, row := range []struct {
		at       situation
		existing events.Existing
		delay    time.Duration
		run      uint32
		events   string
	}{
		{atCreated, events.ReturnRecorded, now, 1, ""},
		{atCreated, events.RunAgain, later, 1, ""},
		{atDelayed, events.ReturnRecorded, now, 1, "Rescheduled"}, // of two schedules the earlier one holds
		{atDelayed, events.ReturnRecorded, later, 1, ""},
		{atRunning, events.ReturnRecorded, now, 1, ""},
		{atRunning, events.RunAgain, now, 1, ""},
		{atRerun, events.ReturnRecorded, now, 2, ""}, // the stored parameters are for the further run
		{atCancelled, events.ReturnRecorded, now, 1, ""},
		{atWaiting, events.RunAgain, now, 1, ""},
		{atSuccess, events.ReturnRecorded, now, 1, ""},
		{atSuccess, events.RunAgain, now, 2, "Rescheduled"},
		{atSuccess, events.RunAgain, later, 2, "Rescheduled"},
		{atSuccessNext, events.ReturnRecorded, now, 2, ""},
		{atSuccessNext, events.RunAgain, now, 2, ""},
		{atFailure, events.ReturnRecorded, now, 1, ""},
		{atFailure, events.RunAgain, now, 2, "Rescheduled"},
		{atFailureRetry, events.ReturnRecorded, now, 1, ""},
		{atFailureRetry, events.RunAgain, now, 1, ""},
	} {
		l := ledgerAt(t, row.at)
		c := l.ask(events.Policy{Existing: row.existing})
		c.NotBefore, c.Params = l.now.Add(row.delay), events.JSON([]byte("2"))
		created, params := l.task().Created, slices.Clone(l.task().Params)
		a, kinds := l.decide(c)
		if a.Code != AnswerOK || !a.Joined || a.Life != created || a.Run != row.run {
			t.Errorf("%s, policy %d: answer %+v, want to join run %d", row.at, row.existing, a, row.run)
		}
		if got := strings.Join(kinds, " "); got != row.events {
			t.Errorf("%s, policy %d: events %q, want %q", row.at, row.existing, got, row.events)
		}
		if row.events != "" && l.task().Due != c.NotBefore {
			t.Errorf("%s: due at %d, want %d", row.at, l.task().Due, c.NotBefore)
		}
		if !slices.Equal(params, l.task().Params) {
			t.Errorf("%s: the stored parameters were replaced", row.at)
		}
	}
}

// A behavior may choose that who submits need not wait for the next run as it is scheduled.
func TestSubmit_ThatRunsNowMakesTheNextRunDue(t *testing.T) {
	for at, want := range map[situation]string{atSuccessNext: "Rescheduled", atFailureRetry: "Rescheduled", atDelayed: "Rescheduled",
		atCreated: "", atRunning: "", atWaiting: "", atSuccess: "", atFailure: ""} {
		for _, in := range []time.Duration{0, time.Second, time.Hour} {
			l := ledgerAt(t, at)
			c, before, events := l.ask(events.Policy{}), l.task().Due, want
			c.RunNow, c.NotBefore = true, l.now.Add(in)
			plain := *c
			plain.RunNow = false
			a, kinds := l.decide(c)
			if in == time.Hour {
				events = "" // the earlier one holds
			}
			if got := strings.Join(kinds, " "); got != events || events != "" && l.task().Due != c.NotBefore || events == "" && l.task().Due != before {
				t.Errorf("%s, in %s: events %q, due at %d; want %q", at, in, got, l.task().Due, events)
			}
			if b, _ := ledgerAt(t, at).decide(&plain); a.Run != b.Run || a.Life != b.Life {
				t.Errorf("%s, in %s: joins run %d, and without it run %d", at, in, a.Run, b.Run)
			}
		}
	}
}

func TestSubmit_ThatMergesIsAskedToAndThenCommits(t *testing.T) {
	for _, row := range []struct {
		at       situation
		existing events.Existing
		run      uint32
		events   string
	}{
		{atCreated, events.ReturnRecorded, 1, "Merged"},
		{atDelayed, events.ReturnRecorded, 1, "Merged Rescheduled"},
		{atRunning, events.ReturnRecorded, 2, "Merged"},
		{atRerun, events.ReturnRecorded, 2, "Merged"},
		{atWaiting, events.ReturnRecorded, 1, "Merged"},
		{atSuccessNext, events.ReturnRecorded, 2, "Merged"},
		{atFailureRetry, events.ReturnRecorded, 1, "Merged"},
		{atSuccess, events.RunAgain, 2, "Merged Rescheduled"},
		{atFailure, events.RunAgain, 2, "Merged Rescheduled"},
	} {
		l := ledgerAt(t, row.at)
		c := l.ask(events.Policy{Existing: row.existing})
		c.Merges = true
		if a, kinds := l.decide(c); a.Code != AnswerMerge || kinds != nil {
			t.Errorf("%s: answer %+v with events %v, want to be asked to merge", row.at, a, kinds)
		}
		m := l.merge("3")
		m.Submit.Policy = c.Policy
		a, kinds := l.decide(m)
		if a.Code != AnswerOK || a.Run != row.run || a.Life != l.task().Created {
			t.Errorf("%s: merge answered %+v, want run %d", row.at, a, row.run)
		}
		if got := strings.Join(kinds, " "); got != row.events {
			t.Errorf("%s: events %q, want %q", row.at, got, row.events)
		}
	}
	for _, at := range []situation{atSuccess, atFailure} {
		l := ledgerAt(t, at)
		c := l.ask(events.Policy{})
		c.Merges = true
		if a, kinds := l.decide(c); a.Code != AnswerOK || a.Run != 1 || kinds != nil {
			t.Errorf("%s: answer %+v with events %v, want the recorded outcome", at, a, kinds)
		}
	}
}

// The run has ended since the submitter was asked to combine: there is an outcome, and with ReturnRecorded nothing runs again.
func TestMerge_AfterTheEndOfTheRunAnswersTheRecordedOutcome(t *testing.T) {
	for _, at := range []situation{atSuccess, atFailure} {
		for _, drop := range []bool{false, true} {
			l := ledgerAt(t, at)
			var a Answer
			m := l.merge("2")
			kinds := l.entry(func(d *Decider) {
				d.Drop = drop
				a = d.Decide(m)
				l.legal(d)
			})
			if kinds != nil || a.Code != AnswerOK || !a.Joined || a.Run != 1 || a.Life != l.task().Created {
				t.Errorf("%s, drop %t: answer %+v with events %v, want the outcome of run 1", at, drop, a, kinds)
			}
		}
		l := ledgerAt(t, at)
		retry := l.merge("2")
		retry.Operator = true
		if a, kinds := l.decide(retry); a.Code != AnswerOK || a.Run != 2 || strings.Join(kinds, " ") != "Merged Rescheduled" {
			t.Errorf("%s, retry: answer %+v with events %v, want a further run", at, a, kinds)
		}
	}
}

// Two copies of one request, of a behavior that combines, are both asked to: what the first brings the second does not bring again.
func TestMerge_OfARequestThatWasRecordedJoins(t *testing.T) {
	for _, at := range []situation{atCreated, atRunning, atSuccess} {
		l := ledgerAt(t, at)
		first := l.merge("2")
		first.Submit.RequestID, first.Submit.Policy.Existing = "r-1", events.RunAgain
		want, _ := l.decide(first)
		second := l.merge("3")
		second.Submit.RequestID, second.Submit.Policy.Existing = "r-1", events.RunAgain
		if a, kinds := l.decide(second); kinds != nil || a.Run != want.Run || a.Life != want.Life {
			t.Errorf("%s: the copy is answered %+v with events %v, want run %d", at, a, kinds, want.Run)
		}
	}
}

// What the store has no room for: a further live task, and larger parameters of one. What ends tasks, and what operators ask, is
// decided all the same.
func TestBrakeAndLimit_HoldForAllThatSubmitsAdd(t *testing.T) {
	large := events.JSON(fmt.Appendf(nil, "%q", strings.Repeat("x", 500)))
	again := events.Policy{Existing: events.RunAgain}
	submit := func(l *journalDriver) Command { return l.ask(again) }
	merge := func(params events.Payload) func(l *journalDriver) Command {
		return func(l *journalDriver) Command {
			m := &Merge{Submit: *l.ask(again), Life: l.task().Created, Seq: l.task().Seq}
			m.Submit.Params = params
			return m
		}
	}
	retry := func(l *journalDriver) Command {
		m := merge(large)(l).(*Merge)
		m.Operator = true
		return m
	}
	operate := func(do Operation) func(l *journalDriver) Command {
		return func(*journalDriver) Command { return &Operate{Task: ledgerTask, Do: do} }
	}
	done := func(how Completion) func(l *journalDriver) Command {
		return func(l *journalDriver) Command { return l.done(how) }
	}
	same := events.JSON([]byte("1"))
	for _, row := range []struct {
		name          string
		at            situation
		command       func(l *journalDriver) Command
		braked, large bool // refused while the brake is closed, or the live tasks are at their limit
	}{
		{"submit", atNothing, submit, true, true},
		{"submit", atCreated, submit, false, false},
		{"submit", atRunning, submit, false, false},
		{"submit", atSuccessNext, submit, false, false},
		{"submit", atSuccess, submit, true, true},
		{"submit", atFailure, submit, true, true},
		{"merge of more", atCreated, merge(large), true, true},
		{"merge of more", atRunning, merge(large), true, true},
		{"merge of more", atSuccess, merge(large), true, true},
		{"merge of as much", atRunning, merge(events.JSON([]byte("7"))), true, false},
		{"merge of the same", atRunning, merge(same), false, false},
		{"merge of the same", atFailure, merge(same), true, true},
		{"retry", atFailure, retry, false, false},
		{"retry", atSuccess, operate(DoRetry), false, false},
		{"cancel", atCreated, operate(DoCancel), false, false},
		{"delete", atSuccess, operate(DoDelete), false, false},
		{"suspend", atRunning, operate(DoSuspend), false, false},
		{"success", atRerun, done(Succeeded), false, false},
		{"failure", atRunning, done(Failed), false, false},
		{"release", atRunning, done(Released), false, false},
		{"snooze", atRunning, done(Snoozed), false, false},
	} {
		for _, drop := range []bool{false, true} {
			for cause, refused := range map[string]bool{"brake": row.braked, "limit": row.large} {
				l := ledgerAt(t, row.at)
				var other Answer
				l.entry(func(d *Decider) { // so that the limit is reached
					c := l.ask(events.Policy{})
					c.Task = "other"
					other = d.Decide(c)
				})
				cmd := row.command(l)
				var a Answer
				kinds := l.entry(func(d *Decider) {
					d.Drop, d.LiveLimit = drop, 50
					if cause == "brake" {
						d.Refusal, d.LiveLimit = "etcd is full", 0
					}
					a = d.Decide(cmd)
					l.legal(d)
				})
				if is := a.Code == AnswerOverload; other.Code != AnswerOK || is != refused || is && (kinds != nil || a.Text == "" || a.Number == 0) ||
					!is && a.Code != AnswerOK && a.Code != AnswerMerge {
					t.Errorf("%s of a task that is %s, %s, drop %t: answer %+v with events %v; want it refused: %t", row.name, row.at, cause, drop, a, kinds, refused)
				}
			}
		}
	}
}

// A submit is refused when its own bytes would exceed the limit, not only when those of earlier ones do already.
func TestLimit_CountsTheBytesThatASubmitWouldAdd(t *testing.T) {
	const adds = 500
	large := events.JSON(fmt.Appendf(nil, "%q", strings.Repeat("x", adds)))
	for _, drop := range []bool{false, true} { // with drop, a final task has lost its parameters, and a merge begins another run
		for _, at := range []situation{atNothing, atCreated, atRunning, atSuccess, atFailure} {
			for _, c := range []struct {
				room    int64
				refused bool
			}{{adds / 2, true}, {2 * adds, false}} {
				l := ledgerAt(t, at)
				ask := l.ask(events.Policy{Existing: events.RunAgain})
				ask.Params = large
				var cmd Command = ask
				if at != atNothing {
					cmd = &Merge{Submit: *ask, Life: l.task().Created, Seq: l.task().Seq}
				}
				var a Answer
				kinds := l.entry(func(d *Decider) {
					d.Drop, d.LiveLimit = drop, d.State.LiveBytes()+c.room
					a = d.Decide(cmd)
					l.legal(d)
				})
				if is := a.Code == AnswerOverload; is != c.refused || is && kinds != nil || !is && a.Code != AnswerOK {
					t.Errorf("%s, room for %d bytes, drop %t: answer %+v with events %v; want it refused: %t", at, c.room, drop, a, kinds, c.refused)
				}
			}
		}
	}
}

func TestMerge_TooLateIsRefusedAndChangesNothing(t *testing.T) {
	for _, at := range situations[1:] {
		for name, spoil := range map[string]func(*Merge){
			"another sequence": func(c *Merge) { c.Seq-- },
			"another life":     func(c *Merge) { c.Life-- },
			"another task":     func(c *Merge) { c.Submit.Task = "orders/other" },
		} {
			l := ledgerAt(t, at)
			c := l.merge("2")
			spoil(c)
			if a, kinds := l.decide(c); a.Code != AnswerChanged || kinds != nil {
				t.Errorf("%s, %s: answer %+v with events %v, want it changed", at, name, a, kinds)
			}
		}
	}
}

func TestMerge_OntoARunningTaskRunsOnceMoreWhateverHappensToTheAttempt(t *testing.T) {
	for _, between := range []func(l *journalDriver){
		func(*journalDriver) {},
		func(l *journalDriver) { l.lose("n-1") },
		func(l *journalDriver) { l.decide(l.done(Released)) },
		func(l *journalDriver) { c := l.done(Failed); c.ByPolicy = true; l.decide(c) },
	} {
		l := ledgerAt(t, atRunning)
		promised, _ := l.decide(l.merge("2"))
		between(l)
		if !l.task().OnNode() {
			l.start(ledgerTask, "n-2")
		}
		if _, kinds := l.decide(l.done(Succeeded)); !slices.Equal(kinds, []string{"Succeeded", "Rescheduled"}) {
			t.Errorf("the end of the run led to %v, want a further run", kinds)
		}
		l.start(ledgerTask, "n-2")
		if string(l.task().Params) != string(events.JSON([]byte("2"))) && !l.task().ParamsElided {
			t.Errorf("the further run has parameters %q", l.task().Params)
		}
		if _, kinds := l.decide(l.done(Succeeded)); !slices.Equal(kinds, []string{"Succeeded"}) {
			t.Errorf("the end of the further run led to %v", kinds)
		}
		if got := l.outcomes[len(l.outcomes)-1].Run; got != promised.Run || promised.Run != 2 {
			t.Errorf("run %d ended, run %d was promised, want 2", got, promised.Run)
		}
	}
}

func TestOperate_OnEveryState(t *testing.T) {
	const no = "refused"
	table := map[Operation]map[situation]string{
		DoCancel: {atRerunCancel: "", atCreated: "Failed", atDelayed: "Failed", atRunning: "CancelRequested", atRerun: "CancelRequested", atCancelled: "",
			atWaiting: "Failed", atSuccess: no, atSuccessNext: "Rescheduled", atFailure: no, atFailureRetry: "Rescheduled"},
		DoRunNow: {atRerunCancel: no, atCreated: "", atDelayed: "Rescheduled", atRunning: no, atRerun: no, atCancelled: no,
			atWaiting: "", atSuccess: no, atSuccessNext: "Rescheduled", atFailure: no, atFailureRetry: "Rescheduled"},
		DoRetry: {atRerunCancel: no, atCreated: no, atDelayed: no, atRunning: no, atRerun: no, atCancelled: no,
			atWaiting: no, atSuccess: "Rescheduled", atSuccessNext: "Rescheduled", atFailure: "Rescheduled", atFailureRetry: "Rescheduled"},
		DoSuspend: {atRerunCancel: "Suspended", atCreated: "Suspended", atDelayed: "Suspended", atRunning: "Suspended", atRerun: "Suspended", atCancelled: "Suspended",
			atWaiting: "Suspended", atSuccess: no, atSuccessNext: "Suspended", atFailure: no, atFailureRetry: "Suspended"},
		DoResume: {},
		DoDelete: {atRerunCancel: no, atCreated: "Deleted", atDelayed: "Deleted", atRunning: no, atRerun: no, atCancelled: no,
			atWaiting: no, atSuccess: "Deleted", atSuccessNext: "Deleted", atFailure: "Deleted", atFailureRetry: "Deleted"},
	}
	for do := range OperationCount {
		for _, at := range situations[1:] {
			l := ledgerAt(t, at)
			a, kinds := l.decide(&Operate{Task: ledgerTask, Do: do})
			want := table[do][at]
			if want == no {
				if a.Code != AnswerState || kinds != nil || !strings.Contains(a.Text, do.String()) {
					t.Errorf("%s while %s: answer %+v with events %v, want a refusal that names it", do, at, a, kinds)
				}
				continue
			}
			if got := strings.Join(kinds, " "); a.Code != AnswerOK || got != want {
				t.Errorf("%s while %s: answer %+v with events %q, want %q", do, at, a, got, want)
			}
		}
		if a, kinds := newJournalDriver(t).decide(&Operate{Task: ledgerTask, Do: do}); a.Code != AnswerNotFound || kinds != nil {
			t.Errorf("%s of nothing: answer %+v with events %v, want not found", do, a, kinds)
		}
	}
}

func TestOperate_SuspendAndResumeTwiceIsOnce(t *testing.T) {
	l := ledgerAt(t, atCreated)
	for _, step := range []struct {
		do   Operation
		want string
	}{{DoSuspend, "Suspended"}, {DoSuspend, ""}, {DoResume, "Resumed"}, {DoResume, ""}} {
		if _, kinds := l.decide(&Operate{Task: ledgerTask, Do: step.do}); strings.Join(kinds, "") != step.want {
			t.Errorf("%s led to %v, want %q", step.do, kinds, step.want)
		}
	}
}

func TestComplete_EveryEndOfAnAttempt(t *testing.T) {
	for _, row := range []struct {
		at     situation
		how    Completion
		next   bool
		events string
		phase  projection.Phase
	}{
		{atRunning, Succeeded, false, "Succeeded", projection.IsSuccess},
		{atRunning, Succeeded, true, "Succeeded", projection.IsSuccess},
		{atRunning, Failed, false, "Failed", projection.IsFailure},
		{atRunning, Failed, true, "Failed", projection.IsFailure},
		{atRunning, Snoozed, false, "Snoozed", projection.Waiting},
		{atRunning, Released, false, "Released", projection.Waiting},
		{atRerun, Succeeded, true, "Succeeded Rescheduled", projection.IsSuccess},
		{atRerun, Failed, false, "Failed Rescheduled", projection.IsFailure},
		{atRerun, Failed, true, "Failed", projection.IsFailure}, // the retry comes first
		{atCancelled, Succeeded, true, "Succeeded", projection.IsSuccess},
		{atCancelled, Failed, true, "Failed", projection.IsFailure},
		{atCancelled, Snoozed, false, "Snoozed Failed", projection.IsFailure},
		{atCancelled, Released, false, "Released Failed", projection.IsFailure},
		{atRerunCancel, Succeeded, false, "Succeeded", projection.IsSuccess},
		{atRerunCancel, Failed, true, "Failed", projection.IsFailure},
		{atRerunCancel, Snoozed, false, "Snoozed Failed", projection.IsFailure},
	} {
		l := ledgerAt(t, row.at)
		c := l.done(row.how)
		c.Wait = time.Second
		if row.next {
			c.Next = l.now.Add(time.Minute)
		}
		a, kinds := l.decide(c)
		if got := strings.Join(kinds, " "); a.Code != AnswerOK || got != row.events || l.task().Phase() != row.phase {
			t.Errorf("%s, completion %d: answer %+v, events %q, %s; want %q, %s", row.at, row.how, a, got, l.task().Phase(), row.events, row.phase)
		}
		if cancelled := row.at == atCancelled || row.at == atRerunCancel; cancelled && !l.task().Final() {
			t.Errorf("completion %d after a cancel: something starts again at %d", row.how, l.task().Due)
		}
		if row.at == atCancelled && row.phase == projection.IsFailure && l.task().Error.Code != events.CodeCancelled {
			t.Errorf("completion %d after a cancel ended as %q", row.how, l.task().Error.Code)
		}
		if a, kinds := l.decide(c); a.Code != AnswerStale || kinds != nil {
			t.Errorf("%s, completion %d: again answered %+v with events %v, want it refused", row.at, row.how, a, kinds)
		}
	}
}

func TestComplete_InAnyOtherStateIsRefused(t *testing.T) {
	for _, at := range situations {
		if at == atRunning || at == atRerun || at == atCancelled || at == atRerunCancel {
			continue
		}
		for how := Succeeded; how <= Released; how++ {
			l := ledgerAt(t, at)
			c := &Complete{Task: ledgerTask, Node: "n-1", How: how, Error: &events.Error{}}
			if l.task() != nil {
				c.Started = l.task().Started
			}
			if a, kinds := l.decide(c); a.Code != AnswerStale || kinds != nil {
				t.Errorf("%s, completion %d: answer %+v with events %v, want it refused", at, how, a, kinds)
			}
			if a, kinds := l.decide(&Progress{Task: ledgerTask, Started: c.Started, Node: "n-1"}); a.Code != AnswerStale || kinds != nil {
				t.Errorf("%s: progress answered %+v with events %v, want it refused", at, a, kinds)
			}
		}
	}
}

func TestComplete_NamesTheAttemptByItsStarted(t *testing.T) {
	l := ledgerAt(t, atRunning)
	first := l.done(Succeeded)
	l.decide(l.done(Released))
	l.start(ledgerTask, first.Node)
	if a, kinds := l.decide(first); a.Code != AnswerStale || kinds != nil {
		t.Errorf("the outcome of an earlier attempt on the same node: answer %+v with events %v, want it refused", a, kinds)
	}
	if a, kinds := l.decide(&Progress{Task: ledgerTask, Started: first.Started, Node: first.Node}); a.Code != AnswerStale || kinds != nil {
		t.Errorf("the progress of an earlier attempt on the same node: answer %+v with events %v, want it refused", a, kinds)
	}
}

// Otherwise a behavior that always asks for another run at once would fill the journal.
func TestComplete_TimesInThePastMeanNowButNotBefore50MillisecondsFromTheStart(t *testing.T) {
	for _, c := range []Complete{
		{How: Succeeded, Next: 1},
		{How: Failed, Error: &events.Error{Code: "x"}, Next: 1},
		{How: Snoozed, Wait: -time.Hour},
	} {
		for took, wait := range map[events.Millis]events.Millis{0: 50, 20: 30, 49: 1, 50: 0, 1000: 0} {
			l := ledgerAt(t, atRunning)
			c.Task, c.Started, c.Node = ledgerTask, l.task().Started, "n-1"
			l.now += took
			if a, _ := l.decide(&c); a.Code != AnswerOK || l.task().Due != l.now+wait {
				t.Errorf("completion %d after %d ms: answer %+v, due at %d, want in %d ms, %d", c.How, took, a, l.task().Due, wait, l.now+wait)
			}
		}
	}
}

// A wait counts from the owner's time, whatever the worker's clock shows.
func TestComplete_NextRunIsDueWhenItsWaitAndItsTimeHaveCome(t *testing.T) {
	for _, how := range []Completion{Succeeded, Failed} {
		l := ledgerAt(t, atRunning)
		for next, due := range map[events.Millis]events.Millis{
			0:                0,
			AnyTime:          l.now + 1000,
			l.now - 3600_000: l.now + 1000,
			l.now + 999:      l.now + 1000,
			l.now + 5000:     l.now + 5000,
		} {
			l := ledgerAt(t, atRunning)
			c := l.done(how)
			c.Next, c.Wait = next, time.Second
			if a, _ := l.decide(c); a.Code != AnswerOK || l.task().Due != due {
				t.Errorf("completion %d with next run %d: answer %+v, due at %d, want %d", how, next, a, l.task().Due, due)
			}
		}
	}
}

func TestFail_ByPolicyUntilTheAttemptsAreUsedUp(t *testing.T) {
	l := newJournalDriver(t)
	l.decide(l.ask(events.Policy{MaxAttempts: 3, Backoff: events.Backoff{Base: time.Second, Max: 3 * time.Second}}))
	for i, want := range []time.Duration{500 * time.Millisecond, time.Second} {
		l.start(ledgerTask, "n-1")
		c := l.done(Failed)
		c.ByPolicy, c.Random = true, 1<<31
		l.decide(c)
		if got := l.task().Due - l.now; got != events.Millis(want.Milliseconds()) {
			t.Errorf("failure %d is tried again after %d ms, want %s", i+1, got, want)
		}
		l.now = l.task().Due
	}
	l.start(ledgerTask, "n-1")
	c := l.done(Failed)
	c.ByPolicy = true
	if l.decide(c); !l.task().Final() {
		t.Errorf("the third failure of three is tried again at %d", l.task().Due)
	}
	if len(l.outcomes) != 1 || l.outcomes[0].Run != 1 {
		t.Errorf("outcomes %+v, want one, of run 1", l.outcomes)
	}
}

func TestLose_FailsTheRunWhenTheLossesAreUsedUp(t *testing.T) {
	l := newJournalDriver(t)
	l.decide(l.ask(events.Policy{MaxLost: 2, LostDelay: time.Second}))
	l.start(ledgerTask, "n-1")
	if kinds := l.lose("n-1"); !slices.Equal(kinds, []string{"Lost"}) || l.task().Due != l.now.Add(time.Second) {
		t.Errorf("first loss: %v, due at %d", kinds, l.task().Due)
	}
	l.now = l.task().Due
	l.start(ledgerTask, "n-2")
	if kinds := l.lose("n-1"); kinds != nil {
		t.Errorf("the loss of another node led to %v", kinds)
	}
	if kinds := l.lose("n-2"); !slices.Equal(kinds, []string{"Lost", "Failed"}) || l.task().Error.Code != events.CodeLost || !l.task().Final() {
		t.Errorf("second loss of two: %v, %+v", kinds, l.task())
	}
}

// An entry that grew with the slots of a node that died could not be committed, by this owner or any other.
func TestLose_AnyNumberOfAttemptsFitsIntoEntries(t *testing.T) {
	const count = 6000
	l := newJournalDriver(t)
	for i := 0; i < count; {
		l.entry(func(d *Decider) {
			for ; i < count && !d.entryFull(); i++ {
				c := l.ask(events.Policy{MaxLost: 1})
				c.Task = events.TaskID(fmt.Sprintf("%0128d", i))
				d.Decide(c)
				d.Start(l.state.Task(c.Task), "n-1", 0, time.Second)
			}
			l.legal(d)
		})
	}
	entries, all := 0, false
	for ; !all; entries++ {
		l.entry(func(d *Decider) {
			all = d.Lose("n-1")
			l.legal(d)
		})
	}
	left := 0
	for range l.state.Running("n-1") {
		left++
	}
	if left != 0 || entries < 2 {
		t.Errorf("%d attempts are still running after %d entries", left, entries)
	}
}

func TestPause_RecordsEachChangeOnce(t *testing.T) {
	l := newJournalDriver(t)
	for _, row := range []struct {
		behavior string
		paused   bool
		events   string
		want     []string
	}{
		{"b", false, "", nil},
		{"b", true, "Created Suspended", []string{"b"}},
		{"b", true, "", []string{"b"}},
		{"a", true, "Merged", []string{"a", "b"}},
		{"b", false, "Merged", []string{"a"}},
		{"a", false, "Merged", []string{}},
	} {
		a, kinds := l.decide(&Pause{row.behavior, row.paused})
		if got := strings.Join(kinds, " "); a.Code != AnswerOK || got != row.events {
			t.Errorf("pause %s %t: answer %+v with events %q, want %q", row.behavior, row.paused, a, got, row.events)
		}
		if got, err := ReadSettings(l.state.Task(events.Settings)); err != nil || !slices.Equal(got.Paused, row.want) {
			t.Errorf("pause %s %t: paused are %v, %v, want %v", row.behavior, row.paused, got.Paused, err, row.want)
		}
	}
	for do := range OperationCount {
		if a, kinds := l.decide(&Operate{Task: events.Settings, Do: do}); a.Code != AnswerState || kinds != nil {
			t.Errorf("%s of the settings: answer %+v with events %v", do, a, kinds)
		}
	}
	l.state.Ripen(l.now)
	if got := l.state.Ready(settingsBehavior); got != nil {
		t.Error("the settings are ready to run")
	}
}

func TestSubmit_RefusesWhatBreaksARule(t *testing.T) {
	for name, spoil := range map[string]func(c *Submit){
		"reserved id":   func(c *Submit) { c.Task = events.Settings },
		"invalid id":    func(c *Submit) { c.Task = "a b" },
		"no id":         func(c *Submit) { c.Task = "" },
		"behavior":      func(c *Submit) { c.Behavior = "Work" },
		"policy":        func(c *Submit) { c.Policy.MaxLost = -1 },
		"params":        func(c *Submit) { c.Params = make(events.Payload, events.MaxPayloadBytes+2) },
		"request id":    func(c *Submit) { c.RequestID = strings.Repeat("r", events.MaxNameBytes+1) },
		"priority":      func(c *Submit) { c.Priority = events.MaxPriority + 1 },
		"low priority":  func(c *Submit) { c.Priority = -1 },
		"hostile bytes": func(c *Submit) { c.Task = events.TaskID(strings.Repeat("\x00", events.MaxIDBytes)) },
	} {
		for _, merge := range []bool{false, true} {
			l := newJournalDriver(t)
			c := l.ask(events.Policy{})
			spoil(c)
			var cmd Command = c
			if merge {
				cmd = &Merge{Submit: *c}
			}
			if a, kinds := l.decide(cmd); a.Code != AnswerInvalid || kinds != nil || len(a.Text) > maxRefusalBytes || a.Text == "" {
				t.Errorf("%s: answer %+v with events %v, want it refused in a few words", name, a, kinds)
			}
		}
	}
}

func TestSubmit_OfAnotherBehaviorIsRefused(t *testing.T) {
	for _, at := range situations[1:] {
		l := ledgerAt(t, at)
		c := l.ask(events.Policy{Existing: events.RunAgain})
		c.Behavior = "other"
		if a, kinds := l.decide(c); a.Code != AnswerState || kinds != nil {
			t.Errorf("%s: answer %+v with events %v, want it refused", at, a, kinds)
		}
	}
}

func TestSubmit_SameRequestJoinsItself(t *testing.T) {
	for _, at := range []situation{atSuccess, atFailure} {
		l := ledgerAt(t, at)
		c := l.ask(events.Policy{Existing: events.RunAgain})
		c.RequestID = "r-1"
		first, kinds := l.decide(c)
		if len(kinds) != 1 || first.Run != 2 {
			t.Fatalf("%s: answer %+v with events %v, want a second run", at, first, kinds)
		}
		l.start(ledgerTask, "n-1")
		l.decide(l.done(Succeeded))
		if again, kinds := l.decide(c); kinds != nil || again.Run != 2 || again.Life != first.Life {
			t.Errorf("%s: the same request answered %+v with events %v, want run 2 again", at, again, kinds)
		}
	}
}

func TestProgress_NoteIsCut(t *testing.T) {
	l := ledgerAt(t, atRunning)
	a, _ := l.decide(&Progress{ledgerTask, l.task().Started, "n-1", events.Progressed{Done: 1, Total: 2, Note: strings.Repeat("n", 1000)}})
	if got := l.task().Progress; a.Code != AnswerOK || got.Done != 1 || len(got.Note) != events.MaxNameBytes {
		t.Errorf("answer %+v, progress %+v, want the note cut at %d bytes", a, got, events.MaxNameBytes)
	}
}
