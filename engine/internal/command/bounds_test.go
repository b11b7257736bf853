package command

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"taskledger/events"
)

// A batch is decided as a whole, and on top of what is there. An entry that could not be stored would end the session
// of every owner that decides it.
func TestEntry_HoldsTheLargestBatchOnTopOfAnAlmostFullOne(t *testing.T) {
	longID := func(i int) events.TaskID { return events.TaskID(fmt.Sprintf("%0128d", i)) }
	text := func(n int) string { return string(bytes.Repeat([]byte("x"), n)) }
	request := text(events.MaxNameBytes)
	kinds := map[string]func(l *journalDriver, i int) Command{
		"submits": func(l *journalDriver, i int) Command {
			c := l.ask(events.Policy{Timeout: time.Hour, LostDelay: time.Hour, Retain: 300 * 24 * time.Hour})
			c.Task, c.Behavior, c.RequestID, c.Priority = longID(i), text(events.MaxBehaviorBytes), request, events.MaxPriority
			return c
		},
		"refusals": func(l *journalDriver, i int) Command {
			c := l.ask(events.Policy{})
			if c.Task = longID(i); i > 0 {
				c.Task = events.TaskID(bytes.Repeat([]byte{0}, events.MaxIDBytes))
			}
			return c
		},
		"outcomes": func(l *journalDriver, i int) Command {
			c := l.ask(events.Policy{})
			c.Task = longID(i)
			l.decide(c)
			l.start(c.Task, "n-1")
			m := &Merge{Submit: *c, Life: l.state.Task(c.Task).Created, Seq: l.state.Task(c.Task).Seq}
			m.Submit.Params = events.JSON([]byte("2"))
			l.decide(m)
			return &Complete{Task: c.Task, Started: l.state.Task(c.Task).Started, Node: "n-1", How: Failed, Error: &events.Error{Code: text(events.MaxNameBytes)}}
		},
		"pauses": func(_ *journalDriver, i int) Command {
			return &Pause{fmt.Sprintf("%048d", i), true}
		},
	}
	for name, commandOf := range kinds {
		l := newJournalDriver(t)
		l.now += 1 << 40
		var b []Command
		for n, size := 0, 0; n < MaxBatchCommands && size < MaxBatchBytes; n++ {
			c := commandOf(l, n)
			b = append(b, c)
			size += c.Size()
		}
		last := l.ask(events.Policy{})
		last.Task, last.Params, last.RequestID = "last", bytes.Repeat([]byte{1}, events.MaxPayloadBytes+1), request
		b[len(b)-1] = last
		l.entry(func(d *Decider) {
			fill := l.ask(events.Policy{})
			fill.Params = bytes.Repeat([]byte{1}, events.SealEntryBytes-2000)
			d.Decide(fill)
			if d.entryFull() {
				t.Fatal("the entry is full before the batch")
			}
			d.Origin = d.Entry.AddOrigin(events.Origin{Sender: text(128), Number: 1 << 62, Principal: request})
			var answers []Answer
			for _, c := range b {
				answers = append(answers, d.Decide(c))
			}
			d.Entry.SetAnswers(EncodeAnswers(answers))
			l.legal(d)
		})
		data := l.entries[len(l.entries)-1]
		if len(data.Origins) != 1 {
			t.Errorf("%s: the entry has %d origins", name, len(data.Origins))
		}
	}
}
