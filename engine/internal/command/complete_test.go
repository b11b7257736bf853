package command_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/commands"
	"taskledger/events"
	"taskledger/projection"
	"taskledger/task"
)

// However many properties a sender puts into an error, its batch is read and the command refused by name.
func TestComplete_WithManyPropertiesIsReadAndRefused(t *testing.T) {
	for _, n := range []int{events.MaxProperties + 1, 64 * events.MaxProperties} {
		c := &command.Complete{Task: "x", How: command.Failed, Error: &events.Error{Properties: map[string]string{}}}
		for i := range n {
			c.Error.Properties[fmt.Sprint(i)] = ""
		}
		b, err := commands.Table.DecodeBatch(batchIn(command.LaneWork, c).Encode())
		if err != nil {
			t.Errorf("%d properties: %v", n, err)
			continue
		}
		limit, is := errors.AsType[*task.LimitError](command.Check(b.Commands[0]))
		if !is || limit.Field != "number of error properties" || limit.Got != int64(n) {
			t.Errorf("%d properties: %v, want them refused by name", n, command.Check(b.Commands[0]))
		}
	}
}

func TestComplete_EveryEndOfAnAttempt(t *testing.T) {
	for _, row := range []struct {
		at     situation
		how    command.Completion
		next   bool
		events string
		phase  projection.Phase
	}{
		{atRunning, command.Succeeded, false, "Succeeded", projection.IsSuccess},
		{atRunning, command.Succeeded, true, "Succeeded", projection.IsSuccess},
		{atRunning, command.Failed, false, "Failed", projection.IsFailure},
		{atRunning, command.Failed, true, "Failed", projection.IsFailure},
		{atRunning, command.Snoozed, false, "Snoozed", projection.Waiting},
		{atRunning, command.Released, false, "Released", projection.Waiting},
		{atRerun, command.Succeeded, true, "Succeeded Rescheduled", projection.IsSuccess},
		{atRerun, command.Failed, false, "Failed Rescheduled", projection.IsFailure},
		{atRerun, command.Failed, true, "Failed", projection.IsFailure}, // the retry comes first
		{atCancelled, command.Succeeded, true, "Succeeded", projection.IsSuccess},
		{atCancelled, command.Failed, true, "Failed", projection.IsFailure},
		{atCancelled, command.Snoozed, false, "Snoozed Failed", projection.IsFailure},
		{atCancelled, command.Released, false, "Released Failed", projection.IsFailure},
		{atRerunCancel, command.Succeeded, false, "Succeeded", projection.IsSuccess},
		{atRerunCancel, command.Failed, true, "Failed", projection.IsFailure},
		{atRerunCancel, command.Snoozed, false, "Snoozed Failed", projection.IsFailure},
	} {
		l := ledgerAt(t, row.at)
		c := l.done(row.how)
		c.Wait = time.Second
		if row.next {
			c.Next = l.now.Add(time.Minute)
		}
		a, kinds := l.decide(c)
		if got := strings.Join(kinds, " "); a.Code != command.AnswerOK || got != row.events || l.task().Phase() != row.phase {
			t.Errorf("%s, completion %d: answer %+v, events %q, %s; want %q, %s", row.at, row.how, a, got, l.task().Phase(), row.events, row.phase)
		}
		if cancelled := row.at == atCancelled || row.at == atRerunCancel; cancelled && !l.task().Final() {
			t.Errorf("completion %d after a cancel: something starts again at %d", row.how, l.task().Due)
		}
		if row.at == atCancelled && row.phase == projection.IsFailure && l.task().Error.Code != events.CodeCancelled {
			t.Errorf("completion %d after a cancel ended as %q", row.how, l.task().Error.Code)
		}
		if a, kinds := l.decide(c); a.Code != command.AnswerStale || kinds != nil {
			t.Errorf("%s, completion %d: again answered %+v with events %v, want it refused", row.at, row.how, a, kinds)
		}
	}
}

// Whatever code a handler gives its failure: what nobody has cancelled has failed.
func TestComplete_FailureThatCallsItselfCancelledIsAFailure(t *testing.T) {
	for at, want := range map[situation]string{atRunning: events.CodeFailed, atCancelled: events.CodeCancelled} {
		l := ledgerAt(t, at)
		c := l.done(command.Failed)
		c.Error = &events.Error{Code: events.CodeCancelled, Message: "by myself"}
		l.decide(c)
		if e := l.task().Error; e == nil || e.Code != want || e.Message != "by myself" || c.Error.Code != events.CodeCancelled {
			t.Errorf("%s: recorded %+v of %+v, want the code %s", at, e, c.Error, want)
		}
	}
}

// Whoever looks at a task that was cancelled while it ran learns why, as one does of a task that was cancelled while
// it waited.
func TestComplete_OfACancelledAttemptTellsWhyItWasCancelled(t *testing.T) {
	for message, want := range map[string]string{
		"task cancelled by ada: wrong customer": "wrong customer",
		"context canceled":                      "wrong customer",
		"disk full":                             "wrong customer; the attempt ended with failed: disk full",
	} {
		l := ledgerAt(t, atRunning)
		l.decide(&command.Operate{Task: ledgerTask, Do: command.DoCancel, Reason: "wrong customer"})
		c := l.done(command.Failed)
		c.Error = &events.Error{Code: events.CodeFailed, Message: message}
		l.decide(c)
		if e := l.task().Error; e == nil || e.Code != events.CodeCancelled || e.Message != want {
			t.Errorf("%s: recorded %+v, want %q", message, e, want)
		}
	}
}

// A function that was told to stop and has not returned: its task was cancelled, and says so in one event, or its work
// is suspended.
func TestComplete_GivenBackWithAnErrorFailsOnlyWhatWasCancelled(t *testing.T) {
	for at, want := range map[situation]string{atRunning: "Released", atCancelled: "Failed"} {
		l := ledgerAt(t, at)
		c := l.done(command.Released)
		c.Error = &events.Error{Code: events.CodeFailed, Message: "it did not return"}
		_, kinds := l.decide(c)
		if got := strings.Join(kinds, " "); got != want {
			t.Errorf("%s: %s, want %s", at, got, want)
		}
		if e := l.task().Error; at == atCancelled && (e == nil || e.Code != events.CodeCancelled ||
			!strings.HasSuffix(e.Message, "; the attempt ended with failed: it did not return")) {
			t.Errorf("recorded %+v", e)
		}
	}
}

func TestComplete_InAnyOtherStateIsRefused(t *testing.T) {
	for _, at := range situations {
		if at == atRunning || at == atRerun || at == atCancelled || at == atRerunCancel {
			continue
		}
		for how := command.Succeeded; how <= command.Released; how++ {
			l := ledgerAt(t, at)
			c := &command.Complete{Task: ledgerTask, Node: "n-1", How: how, Error: &events.Error{}}
			if l.task() != nil {
				c.Started = l.task().Started
			}
			if a, kinds := l.decide(c); a.Code != command.AnswerStale || kinds != nil {
				t.Errorf("%s, completion %d: answer %+v with events %v, want it refused", at, how, a, kinds)
			}
			if a, kinds := l.decide(&command.Progress{Task: ledgerTask, Started: c.Started, Node: "n-1"}); a.Code != command.AnswerStale || kinds != nil {
				t.Errorf("%s: progress answered %+v with events %v, want it refused", at, a, kinds)
			}
		}
	}
}

func TestComplete_NamesTheAttemptByItsStarted(t *testing.T) {
	l := ledgerAt(t, atRunning)
	first := l.done(command.Succeeded)
	l.decide(l.done(command.Released))
	l.start(ledgerTask, first.Node)
	if a, kinds := l.decide(first); a.Code != command.AnswerStale || kinds != nil {
		t.Errorf("the outcome of an earlier attempt on the same node: answer %+v with events %v, want it refused", a, kinds)
	}
	if a, kinds := l.decide(&command.Progress{Task: ledgerTask, Started: first.Started, Node: first.Node}); a.Code != command.AnswerStale || kinds != nil {
		t.Errorf("the progress of an earlier attempt on the same node: answer %+v with events %v, want it refused", a, kinds)
	}
}

// Otherwise a behavior that always asks for another run at once would fill the journal.
func TestComplete_TimesInThePastMeanNowButNotBefore50MillisecondsFromTheStart(t *testing.T) {
	for _, c := range []command.Complete{
		{How: command.Succeeded, Next: 1},
		{How: command.Failed, Error: &events.Error{Code: "x"}, Next: 1},
		{How: command.Snoozed, Wait: -time.Hour},
		{How: command.Released, Next: command.AnyTime},
	} {
		for took, wait := range map[events.Millis]events.Millis{0: 50, 20: 30, 49: 1, 50: 0, 1000: 0} {
			l := ledgerAt(t, atRunning)
			c.Task, c.Started, c.Node = ledgerTask, l.task().Started, "n-1"
			l.now += took
			if a, _ := l.decide(&c); a.Code != command.AnswerOK || l.task().Due != l.now+wait {
				t.Errorf("completion %d after %d ms: answer %+v, due at %d, want in %d ms, %d", c.How, took, a, l.task().Due, wait, l.now+wait)
			}
		}
	}
}

// A wait counts from the owner's time, whatever the worker's clock shows.
func TestComplete_NextRunIsDueWhenItsWaitAndItsTimeHaveCome(t *testing.T) {
	for _, how := range []command.Completion{command.Succeeded, command.Failed} {
		l := ledgerAt(t, atRunning)
		for next, due := range map[events.Millis]events.Millis{
			0:                0,
			command.AnyTime:  l.now + 1000,
			l.now - 3600_000: l.now + 1000,
			l.now + 999:      l.now + 1000,
			l.now + 5000:     l.now + 5000,
		} {
			l := ledgerAt(t, atRunning)
			c := l.done(how)
			c.Next, c.Wait = next, time.Second
			if a, _ := l.decide(c); a.Code != command.AnswerOK || l.task().Due != due {
				t.Errorf("completion %d with next run %d: answer %+v, due at %d, want %d", how, next, a, l.task().Due, due)
			}
		}
	}
}

// A node that stops gives its attempts back at once; a behavior may put the next one off.
func TestComplete_ReleasedTaskIsReadyAtOnceOrAfterItsWait(t *testing.T) {
	for _, row := range []struct{ next, due events.Millis }{{0, 0}, {command.AnyTime, 1000}} {
		l := ledgerAt(t, atRunning)
		c := l.done(command.Released)
		c.Next, c.Wait = row.next, time.Second
		before := *l.task()
		a, _ := l.decide(c)
		if after := l.task(); a.Code != command.AnswerOK || after.Due != l.now+row.due || after.Failures != before.Failures || after.Lost != before.Lost || after.Runs != before.Runs {
			t.Errorf("next %d: answer %+v, due in %d ms, %d failures, %d losses, %d runs", row.next, a, after.Due-l.now, after.Failures, after.Lost, after.Runs)
		}
	}
}

func TestFail_ByPolicyUntilTheAttemptsAreUsedUp(t *testing.T) {
	l := newJournalDriver(t)
	l.decide(l.ask(events.Policy{MaxAttempts: 3, Backoff: events.Backoff{Base: time.Second, Max: 3 * time.Second}}))
	for i, want := range []time.Duration{500 * time.Millisecond, time.Second} {
		l.start(ledgerTask, "n-1")
		c := l.done(command.Failed)
		c.ByPolicy, c.Random = true, 1<<31
		l.decide(c)
		if got := l.task().Due - l.now; got != events.Millis(want.Milliseconds()) {
			t.Errorf("failure %d is tried again after %d ms, want %s", i+1, got, want)
		}
		l.now = l.task().Due
	}
	l.start(ledgerTask, "n-1")
	c := l.done(command.Failed)
	c.ByPolicy = true
	if l.decide(c); !l.task().Final() {
		t.Errorf("the third failure of three is tried again at %d", l.task().Due)
	}
	if len(l.outcomes) != 1 || l.outcomes[0].Run != 1 {
		t.Errorf("outcomes %+v, want one, of run 1", l.outcomes)
	}
}
