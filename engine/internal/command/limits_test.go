package command_test

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/command/commandtest"
	"taskledger/engine/internal/commands"
	"taskledger/events"
	"taskledger/internal/wire"
	"taskledger/store"
	"taskledger/task"
)

func namesLimit(text string) bool {
	return strings.Contains(text, "exceed") || strings.Contains(text, "want")
}

// A new command without limits is found here: it cannot grow without bound, and its owner refuses it as its sender
// does.
func TestCheck_RefusesEveryFieldAboveItsLimit(t *testing.T) {
	for op := uint64(1); op < commandtest.Count(); op++ {
		for _, c := range commandtest.Largest(op) {
			if err := command.Check(c); err != nil {
				t.Errorf("%T in its largest form: %v", c, err)
			}
		}
		for field, c := range commandtest.Oversized(op) {
			err := command.Check(c)
			limit, isLimit := errors.AsType[*task.LimitError](err)
			invalid, isInvalid := errors.AsType[*store.InvalidError](err)
			switch {
			case isLimit && (limit.Field == "" || limit.Got != limit.Limit+1), isInvalid && (invalid.Field == "" || !namesLimit(invalid.Problem)), !isLimit && !isInvalid:
				t.Errorf("%s is too large by one: %v, want the field and the limit", field, err)
			}
		}
	}
}

// What is stored is read by everybody: the owner looks at the codec, whatever the sender did.
func TestDecide_RefusesPayloadsThatNobodyReads(t *testing.T) {
	for _, p := range []events.Payload{{}, {1}, {0, '1'}, {2, '1'}} {
		submit := form[*command.Submit](0)
		checked := form[*command.Merge](0)
		done := form[*command.Complete](0)
		submit.Params, checked.Submit.Params, checked.Submit.Checked, done.Result = p, p, true, p
		for _, c := range []command.Command{submit, checked, done} {
			a, kinds := newJournalDriver(t).decide(c)
			if a.Code != command.AnswerInvalid || kinds != nil || !strings.Contains(a.Text, "codec") || !strings.HasPrefix(a.Text, "parameters: ") && !strings.HasPrefix(a.Text, "result: ") {
				t.Errorf("%T with payload %q: answer %+v with events %v, want it refused by field and codec", c, p, a, kinds)
			}
		}
	}
}

func TestNewSubmit_SaysHowFarAheadATaskMayBeScheduled(t *testing.T) {
	now := time.Date(2026, 11, 27, 0, 0, 0, 0, time.UTC)
	q := &task.Request{SubmitOptions: task.SubmitOptions{NotBefore: now.AddDate(24, 0, 0)}}
	_, err := command.NewSubmit(now, "noop", &events.Policy{}, &task.Plan{}, q)
	if want := "not before: 2050-11-27T00:00:00Z: want ten years ahead at most"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

func TestCheck_OfACommandAsAWhole(t *testing.T) {
	both := commandtest.Largest((*command.Complete).Op(nil))[0].(*command.Complete)
	both.How, both.Error = command.Failed, commandtest.Error()
	if limit, is := errors.AsType[*task.LimitError](command.Check(both)); !is || limit.Field != "command" {
		t.Errorf("a result and an error: %v, want it refused", command.Check(both))
	}
	long := map[string]string{strings.Repeat("x", events.MaxPayloadBytes/2): "x"}
	if err := command.Check(&command.Complete{How: command.Failed, Error: &events.Error{Properties: long}}); err == nil {
		t.Error("properties above their limit in all are not refused")
	}
}

func TestDecide_RefusesWhatIsTooLarge(t *testing.T) {
	for op := uint64(1); op < commandtest.Count(); op++ {
		for field, c := range commandtest.Oversized(op) {
			if a, kinds := newJournalDriver(t).decide(c); a.Code != command.AnswerInvalid || kinds != nil || !namesLimit(a.Text) {
				t.Errorf("%s: answer %+v with events %v, want it refused by name", field, a, kinds)
			}
		}
	}
}

// Batches are cut by size, and an owner makes room for what they say.
func TestCommand_SizeCoversTheLargestForm(t *testing.T) {
	for op := uint64(1); op < commandtest.Count(); op++ {
		for _, c := range commandtest.Largest(op) {
			var w wire.Writer
			if command.Encode(&w, c); len(w.B) > c.Size() {
				t.Errorf("%T takes %d bytes, its size is %d", c, len(w.B), c.Size())
			}
		}
	}
}

// What is asked of a shard in the state and the form that add the most to an entry, by what is asked.
var largest = map[string]func(l *journalDriver) command.Command{
	"submit": func(l *journalDriver) command.Command { return form[*command.Submit](0) },
	"submit of a task that has ended": func(l *journalDriver) command.Command {
		l.ended()
		return &l.remerge().Submit
	},
	"merge into a task that has ended": func(l *journalDriver) command.Command {
		l.ended()
		return l.remerge()
	},
	"merge that is due sooner": func(l *journalDriver) command.Command {
		l.decide(form[*command.Submit](0))
		c := l.remerge()
		c.Submit.NotBefore, c.Submit.Delay = 0, 0
		return c
	},
	"success that is run again": func(l *journalDriver) command.Command {
		l.running()
		l.decide(l.remerge())
		return l.outcome(0)
	},
	"failure that is run again": func(l *journalDriver) command.Command {
		l.running()
		l.decide(l.remerge())
		c := l.outcome(1)
		c.Next, c.ByPolicy = 0, false
		return c
	},
	"failure that is retried": func(l *journalDriver) command.Command {
		l.running()
		return l.outcome(1)
	},
	"failure of what was cancelled": func(l *journalDriver) command.Command {
		l.running()
		l.decide(l.cancel())
		return l.outcome(1)
	},
	"snooze of what was cancelled": func(l *journalDriver) command.Command {
		l.running()
		l.decide(l.cancel())
		c := l.outcome(0)
		c.How, c.Result = command.Snoozed, nil
		return c
	},
	"progress": func(l *journalDriver) command.Command {
		l.running()
		c := form[*command.Progress](0)
		c.Started = l.state.Task(c.Task).Started
		return c
	},
	"cancel of what runs": func(l *journalDriver) command.Command {
		l.running()
		return l.cancel()
	},
	"cancel of what waits": func(l *journalDriver) command.Command {
		l.decide(form[*command.Submit](0))
		return l.cancel()
	},
	"first pause": func(l *journalDriver) command.Command { return form[*command.Pause](0) },
	"pause beside as many as there may be": func(l *journalDriver) command.Command {
		for i := range 400 {
			l.decide(&command.Pause{Behavior: fmt.Sprintf("%048d", i), Paused: true})
		}
		return form[*command.Pause](0)
	},
	"reconcile of attempts that are over": func(l *journalDriver) command.Command {
		c := form[*command.Reconcile](0)
		c.Epoch = 0
		return c
	},
}

// form is one of the largest forms of a command.
func form[C command.Command](which int) C {
	var none C
	return commandtest.Largest(none.Op())[which].(C)
}

// running starts the largest task, and ended ends it.
func (l *journalDriver) running() {
	c := form[*command.Submit](0)
	c.NotBefore, c.Delay = 0, 0
	l.decide(c)
	l.start(c.Task, form[*command.Complete](0).Node)
}

func (l *journalDriver) ended() {
	l.running()
	c := l.outcome(0)
	c.Next = 0
	l.decide(c)
	l.decide(l.cancel()) // or it would be repeated
}

func (l *journalDriver) outcome(which int) *command.Complete {
	c := form[*command.Complete](which)
	c.Started = l.state.Task(c.Task).Started
	return c
}

// cancel cancels the task as it is.
func (l *journalDriver) cancel() *command.Operate {
	c := form[*command.Operate](0)
	c.Seen = l.state.Task(c.Task).Last
	return c
}

// remerge asks for other parameters than the task has, by a request of its own.
func (l *journalDriver) remerge() *command.Merge {
	c := form[*command.Merge](0)
	t := l.state.Task(c.Submit.Task)
	c.Life, c.Seq, c.Operator = t.Created, t.Seq, false
	c.Submit.RequestID = strings.ToUpper(c.Submit.RequestID)
	c.Submit.Params = append(events.Payload(nil), c.Submit.Params...)
	c.Submit.Params[2] = 'q'
	return c
}

// Batches are cut, and entries filled, by what commands say that they take.
// A refusal is recorded where another command of its batch has events.
func TestCommand_RefusalAddsNoMoreToAnEntryThanItsSize(t *testing.T) {
	for name, ask := range itemConflicts {
		l := newJournalDriver(t)
		c := ask(l)
		a, kinds := l.decide(c)
		if a.Code != command.AnswerConflict || kinds != nil {
			t.Errorf("%s: answer %+v with events %v, want a conflict", name, a.Code, kinds)
		}
		if n := len(command.EncodeAnswers([]command.Answer{a})); n > c.Size() {
			t.Errorf("%s is answered with %d bytes, its size is %d", name, n, c.Size())
		}
	}
}

func TestCommand_AddsNoMoreToAnEntryThanItsSize(t *testing.T) {
	covered := map[uint64]bool{}
	maps.Copy(largest, itemCases)
	maps.Copy(largest, scheduleCases)
	maps.Copy(largest, workCases)
	for name, ask := range largest {
		l := newJournalDriver(t)
		l.now += 1 << 40
		c := ask(l)
		covered[c.Op()] = true
		kinds := l.entry(func(d *command.Decider) {
			d.ParamsMayGo, d.OffersAnswered = true, func(string, uint64) {}
			d.Origin = d.Entry.AddOrigin(events.Origin{Sender: "c-1", Number: 1})
			before := d.Entry.Size()
			a := d.Decide(c)
			l.legal(d)
			if a.Code != command.AnswerOK {
				t.Errorf("%s: answer %+v", name, a)
			}
			answer := command.EncodeAnswers([]command.Answer{a})
			if added := d.Entry.Size() - before + len(answer); added > c.Size() {
				t.Errorf("%s adds %d bytes to the entry, its size is %d", name, added, c.Size())
			}
			d.Entry.SetAnswers(answer)
		})
		if kinds == nil && c.Op() != (*command.Reconcile).Op(nil) {
			t.Errorf("%s causes no event", name)
		}
	}
	for op := uint64(1); op < commandtest.Count(); op++ {
		if c := commands.Table.New(op); command.IsDecided(c) && !covered[op] {
			t.Errorf("%T is decided and has no largest case", c)
		}
	}
}
