package command_test

import (
	"bytes"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/command/commandtest"
	"taskledger/engine/internal/itemcommand"
	"taskledger/events"
	"taskledger/item"
)

// A batch is decided as a whole, and on top of what is there. An entry that could not be stored would end the session
// of every owner that decides it.
func TestEntry_HoldsTheLargestBatchOnTopOfAnAlmostFullOne(t *testing.T) {
	longID := func(i int) events.TaskID { return events.TaskID(fmt.Sprintf("%0128d", i)) }
	text := func(n int) string { return string(bytes.Repeat([]byte("x"), n)) }
	request := text(events.MaxNameBytes)
	kinds := map[string]func(l *journalDriver, i int) command.Command{
		"submits": func(l *journalDriver, i int) command.Command {
			c := l.ask(events.Policy{Timeout: time.Hour, LostDelay: time.Hour, Retain: 300 * 24 * time.Hour})
			c.Task, c.Behavior, c.RequestID, c.Priority = longID(i), text(events.MaxBehaviorBytes), request, events.MaxPriority
			return c
		},
		"refusals": func(l *journalDriver, i int) command.Command {
			c := l.ask(events.Policy{})
			if c.Task = longID(i); i > 0 {
				c.Task = events.TaskID(bytes.Repeat([]byte{0}, events.MaxIDBytes))
			}
			return c
		},
		"outcomes": func(l *journalDriver, i int) command.Command {
			c := l.ask(events.Policy{})
			c.Task = longID(i)
			l.decide(c)
			l.start(c.Task, "n-1")
			m := &command.Merge{Submit: *c, Life: l.state.Task(c.Task).Created, Seq: l.state.Task(c.Task).Seq}
			m.Submit.Params = events.JSON([]byte("2"))
			l.decide(m)
			return &command.Complete{Task: c.Task, Started: l.state.Task(c.Task).Started, Node: "n-1", How: command.Failed, Error: &events.Error{Code: text(events.MaxNameBytes)}}
		},
		"pauses": func(_ *journalDriver, i int) command.Command {
			return &command.Pause{fmt.Sprintf("%048d", i/2), i%2 == 0, ""}
		},
		"pauses with a reason": func(_ *journalDriver, i int) command.Command {
			return &command.Pause{fmt.Sprintf("%048d", i/2), i%2 == 0, text(events.MaxNameBytes)}
		},
		"merges": func(l *journalDriver, i int) command.Command {
			c := l.ask(events.Policy{})
			c.Task, c.NotBefore = longID(i), l.now.Add(time.Hour)
			l.decide(c)
			m := &command.Merge{Submit: *c, Life: l.state.Task(c.Task).Created, Seq: 1}
			m.Submit.Params, m.Submit.RequestID, m.Submit.NotBefore = events.JSON([]byte("2")), request, 0
			return m
		},
		"reports": func(l *journalDriver, i int) command.Command {
			started := startedAs(l, longID(i))
			return &command.Progress{Task: longID(i), Started: started, Node: "n-1", Progress: events.Progressed{Note: request}}
		},
		"cancels": func(l *journalDriver, i int) command.Command {
			startedAs(l, longID(i))
			return &command.Operate{Task: longID(i), Do: command.DoCancel, Reason: request}
		},
		"updates of items": func(_ *journalDriver, i int) command.Command {
			c := adds(1+i%20, 1+i%events.MaxGroupBytes)
			c.Adds[0].Data = nil
			c.Key = fmt.Sprint(i)
			return c
		},
		"claims": func(l *journalDriver, i int) command.Command {
			if i == 0 {
				for n := range 2 {
					c := adds(item.MaxIDs, 1)
					c.Key = fmt.Sprint("k", n)
					for at := range c.Adds {
						c.Adds[at].At, c.Adds[at].Data = 1, nil
					}
					l.decide(c)
				}
			}
			return &itemcommand.Claim{Store: largeStore, Client: largeClient, Key: fmt.Sprint(i, largeKey)[:item.MaxKeyBytes], Group: "g", Duration: int64(item.MaxDuration)}
		},
		"conflicts of items": func(_ *journalDriver, i int) command.Command {
			return &itemcommand.Update{Store: largeStore, Client: largeClient, Deletes: ids(item.MaxNumber, 1+i)}
		},
		"roll calls": func(_ *journalDriver, i int) command.Command {
			c := &command.Reconcile{Node: "n-1"}
			for n := range command.MaxReconciled / 8 {
				c.Attempts = append(c.Attempts, command.AttemptName{Task: longID(n), Started: events.Ref(i)})
			}
			return c
		},
	}
	covered := map[uint64]bool{}
	for name, commandOf := range kinds {
		l := newJournalDriver(t)
		l.now += 1 << 40
		var b []command.Command
		for n, size := 0, 0; n < command.MaxBatchCommands && size < command.MaxBatchBytes; n++ {
			c := commandOf(l, n)
			covered[c.Op()] = true
			b = append(b, c)
			size += c.Size()
		}
		last := l.ask(events.Policy{})
		last.Task, last.Params, last.RequestID = "last", bytes.Repeat([]byte{1}, events.MaxPayloadBytes+1), request
		b[len(b)-1] = last
		l.entry(func(d *command.Decider) {
			d.OffersAnswered = func(string, uint64) {}
			fill := l.ask(events.Policy{})
			fill.Params = bytes.Repeat([]byte{1}, events.SealEntryBytes-2000)
			d.Decide(fill)
			if full(d) {
				t.Fatal("the entry is full before the batch")
			}
			d.Origin = d.Entry.AddOrigin(events.Origin{Sender: text(128), Number: 1 << 62, Asker: events.Asker{Principal: request}})
			var answers []command.Answer
			for _, c := range b {
				answers = append(answers, d.Decide(c))
			}
			d.Entry.SetAnswers(command.EncodeAnswers(answers))
			l.legal(d)
		})
		data := l.entries[len(l.entries)-1]
		if len(data.Origins) != 1 {
			t.Errorf("%s: the entry has %d origins", name, len(data.Origins))
		}
	}
	for op := uint64(1); op < commandtest.Count(); op++ {
		if c := command.New(op); command.IsDecided(c) && !covered[op] {
			t.Errorf("%T is decided and no batch has it", c)
		}
	}
}

// startedAs makes a task and starts it.
func startedAs(l *journalDriver, id events.TaskID) events.Ref {
	c := l.ask(events.Policy{})
	c.Task = id
	l.decide(c)
	l.start(id, "n-1")
	return l.state.Task(id).Started
}

func TestBatch_EveryCommandIsReadAsWritten(t *testing.T) {
	count := commandCount()
	rapid.Check(t, func(t *rapid.T) {
		b := &command.Batch{Sender: "c-1", Lane: uint8(rapid.IntRange(0, int(command.LaneCount)-1).Draw(t, "lane")), Number: rapid.Uint64Range(1, 1<<62).Draw(t, "number"),
			Made:      genTime.Draw(t, "made"),
			Principal: genText.Draw(t, "principal"), Commands: []command.Command{}}
		for op := uint64(1); op < count; op++ {
			c := genCommand(t, op)
			if c.Op() != op {
				t.Fatalf("command %d says it is %d", op, c.Op())
			}
			b.Commands = append(b.Commands, c)
		}
		got, err := command.DecodeBatch(b.Encode())
		if err != nil || !reflect.DeepEqual(got, b) {
			t.Fatalf("read as\n%+v, %v; want\n%+v", got, err, b)
		}
	})
}

func TestBatch_RefusesWhatNoSenderMakes(t *testing.T) {
	one := slicesOf(&command.Info{}, 1)
	for name, b := range map[string]*command.Batch{
		"no sender":    {Lane: command.LaneSubmit, Number: 1, Commands: one},
		"number 0":     {Sender: "c-1", Commands: one},
		"unknown lane": {Sender: "c-1", Lane: command.LaneCount, Number: 1, Commands: one},
		"no command":   {Sender: "c-1", Number: 1},
		"long sender":  {Sender: strings.Repeat("c", events.MaxNameBytes+1), Number: 1, Commands: one},
		"too many":     {Sender: "c-1", Number: 1, Commands: slicesOf(&command.Info{}, command.MaxBatchCommands+1)},
	} {
		if got, err := command.DecodeBatch(b.Encode()); err == nil {
			t.Errorf("%s: read as %+v", name, got)
		}
	}
	for name, c := range map[string]command.Command{
		"completion": &command.Complete{How: command.Released + 1},
		"no error":   &command.Complete{How: command.Failed},
		"run":        &command.Await{Run: math.MaxUint32 + 1},
	} {
		b := &command.Batch{Sender: "c-1", Number: 1, Commands: []command.Command{c}}
		if got, err := command.DecodeBatch(b.Encode()); err == nil {
			t.Errorf("%s: read as %+v", name, got)
		}
	}
}

func slicesOf(c command.Command, n int) []command.Command {
	all := make([]command.Command, n)
	for i := range all {
		all[i] = c
	}
	return all
}

func FuzzDecodeBatch(f *testing.F) {
	all := &command.Batch{Sender: "c-1", Lane: command.LaneWork, Number: 7, Principal: "ada"}
	for op := uint64(1); command.New(op) != nil; op++ {
		c := command.New(op)
		if done, ok := c.(*command.Complete); ok {
			done.How, done.Error = command.Failed, &events.Error{Code: "x", Properties: map[string]string{"a": "b"}}
		}
		all.Commands = append(all.Commands, c)
	}
	fuzzed(f, command.DecodeBatch, (*command.Batch).Encode, all.Encode())
}
