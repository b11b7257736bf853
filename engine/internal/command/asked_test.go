package command_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/commands"
	"taskledger/events"
)

var ada = &events.Caller{Principal: "ada", RequestID: "r-1"}

// batchOf is a batch with a submit of a task for each caller.
func batchOf(number uint64, callers ...*events.Caller) *command.Batch {
	b := &command.Batch{Sender: "c", Lane: command.LaneSubmit, Number: number, Principal: "gateway"}
	for i, caller := range callers {
		b.Add(&command.Submit{Task: events.TaskID(fmt.Sprintf("t-%d-%d", number, i)), Behavior: "work", Policy: complete(events.Policy{})}, caller)
	}
	return b
}

func complete(p events.Policy) events.Policy {
	full, err := p.Complete()
	if err != nil {
		panic(err)
	}
	return full
}

// Whoever asked for each command is read as it was written, and a batch without callers takes no byte more than it did.
func TestBatch_CallersAreReadAsWritten(t *testing.T) {
	grace := &events.Caller{Principal: "grace", Traceparent: "00-1-2-01"}
	for _, callers := range [][]*events.Caller{{nil}, {ada}, {ada, ada}, {nil, ada, ada, nil, grace}, {ada, grace, ada}} {
		b := batchOf(1, callers...)
		got, err := commands.Table.DecodeBatch(b.Encode())
		if err != nil || !reflect.DeepEqual(got, b) {
			t.Errorf("%d callers: %+v, %v, want %+v", len(callers), got, err, b)
		}
	}
	if got, want := len(batchOf(1, ada, ada, ada).Asked), 1; got != want {
		t.Errorf("one caller of three commands is named %d times", got)
	}
	plain := batchOf(1, nil, nil)
	if data := plain.Encode(); data[0] != 0x96 {
		t.Errorf("a batch without callers begins with %x, want an array of 6", data[0])
	}
}

func TestBatch_CallersThatCannotBeAreRefused(t *testing.T) {
	for _, c := range []struct {
		name, want string
		asked      []command.Asked
	}{
		{"beyond the commands", "caller of command 2 of 2", []command.Asked{{From: 2, Caller: *ada}}},
		{"twice", "caller of command 1 of 2", []command.Asked{{From: 1, Caller: *ada}, {From: 1, Caller: events.Caller{}}}},
		{"out of order", "caller of command 0 of 2", []command.Asked{{From: 1, Caller: *ada}, {From: 0, Caller: events.Caller{}}}},
		{"too many", "3 callers of 2 commands", []command.Asked{{From: 0, Caller: *ada}, {From: 1}, {From: 1, Caller: *ada}}},
		{"none where none was", "caller of command 0 is named again", []command.Asked{{From: 0, Caller: events.Caller{}}}},
		{"none before one", "caller of command 0 is named again", []command.Asked{{From: 0, Caller: events.Caller{}}, {From: 1, Caller: *ada}}},
		{"one like the last", "caller of command 1 is named again", []command.Asked{{From: 0, Caller: *ada}, {From: 1, Caller: *ada}}},
	} {
		b := batchOf(1, nil, nil)
		b.Asked = c.asked
		if _, err := commands.Table.DecodeBatch(b.Encode()); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

// The sender of another build checks nothing: its batch reaches the owner, and is answered.
func TestDecideBatch_RefusesWhoNoEventCanNameByFieldAndLimit(t *testing.T) {
	long := strings.Repeat("x", events.MaxNameBytes+1)
	for field, spoil := range map[string]func(b *command.Batch){
		"principal":            func(b *command.Batch) { b.Principal = long },
		"caller: principal":    func(b *command.Batch) { b.Asked[0].Caller.Principal = long },
		"caller: request id":   func(b *command.Batch) { b.Asked[0].Caller.RequestID = long },
		"caller: traceparent":  func(b *command.Batch) { b.Asked[0].Caller.Traceparent = long },
		"caller: request id ":  func(b *command.Batch) { b.Asked[0].Caller.RequestID = "\xff" },
		"caller: traceparent ": func(b *command.Batch) { b.Asked[0].Caller.Traceparent = strings.Repeat(long, 1000) },
	} {
		spoilt := batchOf(1, nil, ada)
		spoil(spoilt)
		b, err := commands.Table.DecodeBatch(spoilt.Encode())
		if err != nil {
			t.Errorf("%s: it does not reach the owner: %v", field, err)
			continue
		}
		l := newJournalDriver(t)
		kinds := l.entry(func(d *command.Decider) {
			for _, a := range d.DecideBatch(b) {
				if a.Code != command.AnswerInvalid || !strings.HasPrefix(a.Text, strings.TrimSpace(field)) || !namesLimit(a.Text) || !strings.Contains(a.Text, fmt.Sprint(events.MaxNameBytes)) {
					t.Errorf("%s: answer %+v, want it refused by field and limit", field, a)
				}
			}
			if n := len(d.Entry.Entry.Origins); n != 0 {
				t.Errorf("%s: %d origins are recorded", field, n)
			}
		})
		if kinds != nil {
			t.Errorf("%s: events %v", field, kinds)
		}
	}
}

// Every event tells who asked for it: the caller of its command, or the sender of the batch. A caller whose
// commands cause nothing is not recorded, and neither is a batch without events.
func TestDecideBatch_EventsTellWhoAsked(t *testing.T) {
	l := newJournalDriver(t)
	l.entry(func(d *command.Decider) {
		nothing := &command.Batch{Sender: "c", Number: 1}
		nothing.Add(&command.Operate{Task: "unknown", Do: command.DoDelete}, ada)
		size := d.Entry.Size()
		if d.DecideBatch(nothing); len(d.Entry.Entry.Origins) != 0 || d.Entry.Size() != size || d.Origin != 0 {
			t.Errorf("a batch without events left %d origins and %d bytes", len(d.Entry.Entry.Origins), d.Entry.Size()-size)
		}
		b := batchOf(2, nil, ada, ada, nil)
		b.Add(&command.Operate{Task: "unknown", Do: command.DoDelete}, &events.Caller{Principal: "nobody"})
		if answers := d.DecideBatch(b); len(answers) != 5 || answers[4].Code != command.AnswerNotFound {
			t.Errorf("answers %+v", answers)
		}
		l.legal(d)
	})
	e := l.entries[len(l.entries)-1]
	var got []events.Caller
	for i := range e.Events {
		got = append(got, e.Events[i].Caller)
	}
	gateway := events.Caller{Principal: "gateway"}
	if want := []events.Caller{gateway, *ada, *ada, gateway}; !slices.Equal(got, want) {
		t.Errorf("asked by %+v, want %+v", got, want)
	}
	if n := len(e.Origins); n != 2 {
		t.Errorf("%d origins, want the batch and one caller", n)
	}
	if answers, err := command.DecodeAnswers(e.Origins[0].Answers); err != nil || len(answers) != 5 {
		t.Errorf("answers of the batch: %+v, %v", answers, err)
	}
}

// A sender cuts its batches by what callers take, too: an entry holds the largest of them.
func TestDecideBatch_OfAsManyCallersAsCommandsFitsAnEntry(t *testing.T) {
	l := newJournalDriver(t)
	text := strings.Repeat("x", events.MaxNameBytes)
	l.entry(func(d *command.Decider) {
		b := &command.Batch{Sender: text, Number: 1, Principal: text}
		for n, size := 0, 0; size < command.MaxBatchBytes; n++ {
			caller := &events.Caller{Principal: fmt.Sprintf("%0256d", n), RequestID: text, Traceparent: text}
			c := &command.Submit{Task: events.TaskID(fmt.Sprintf("t-%d", n)), Behavior: "work", Policy: complete(events.Policy{})}
			b.Add(c, caller)
			size += c.Size() + 2*caller.Bytes()
		}
		d.DecideBatch(b)
		l.legal(d)
	})
}
