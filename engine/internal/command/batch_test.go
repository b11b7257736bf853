package command_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/command/commandtest"
	"taskledger/engine/internal/commands"
	"taskledger/engine/internal/stores"
	"taskledger/events"
	"taskledger/internal/message"
	"taskledger/internal/wire"
	"taskledger/item"
	"taskledger/store"
	"taskledger/task"
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
			return &stores.Claim{Store: largeStore, Client: largeClient, Key: fmt.Sprint(i, largeKey)[:item.MaxKeyBytes], Group: "g", Duration: int64(item.MaxDuration)}
		},
		"conflicts of items": func(_ *journalDriver, i int) command.Command {
			return &stores.Update{Store: largeStore, Client: largeClient, Deletes: ids(item.MaxNumber, 1+i)}
		},
		"reconciliations": func(_ *journalDriver, i int) command.Command {
			c := &command.Reconcile{Node: "n-1"}
			for n := range command.MaxReconciled / 8 {
				c.Attempts = append(c.Attempts, command.AttemptName{Task: longID(n), Started: events.Ref(i)})
			}
			return c
		},
	}
	maps.Copy(kinds, scheduleBatches)
	maps.Copy(kinds, workBatches)
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
			d.Origin = d.Entry.AddOrigin(events.Origin{Sender: text(128), Number: 1 << 62, Caller: events.Caller{Principal: request}})
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
		if c := commands.Table.New(op); command.IsDecided(c) && !covered[op] {
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
		got, err := commands.Table.DecodeBatch(b.Encode())
		if err != nil || !reflect.DeepEqual(got, b) {
			t.Fatalf("read as\n%+v, %v; want\n%+v", got, err, b)
		}
	})
}

func TestBatch_RefusesWhatNoSenderMakes(t *testing.T) {
	sound := func() *command.Batch {
		return &command.Batch{Sender: "c-1", Number: 1, Commands: slicesOf(&command.Info{}, 1)}
	}
	for want, spoil := range map[string]func(b *command.Batch){
		`batch 1 of lane 0 from "" with 1 commands`:       func(b *command.Batch) { b.Sender = "" },
		"batch 0 of lane 0":                               func(b *command.Batch) { b.Number = 0 },
		fmt.Sprint("batch 1 of lane ", command.LaneCount): func(b *command.Batch) { b.Lane = command.LaneCount },
		`from "c-1" with 0 commands`:                      func(b *command.Batch) { b.Commands = nil },
		`c" with 1 commands`:                              func(b *command.Batch) { b.Sender = strings.Repeat("c", events.MaxNameBytes+1) },
		fmt.Sprint("with ", command.MaxBatchCommands+1, " commands"): func(b *command.Batch) {
			b.Commands = slicesOf(&command.Info{}, command.MaxBatchCommands+1)
		},
		"completion 4":   func(b *command.Batch) { b.Commands[0] = &command.Complete{How: command.Released + 1} },
		"completion 1":   func(b *command.Batch) { b.Commands[0] = &command.Complete{How: command.Failed} },
		"run 4294967296": func(b *command.Batch) { b.Commands[0] = &command.Await{Run: math.MaxUint32 + 1} },
	} {
		b := sound()
		spoil(b)
		if got, err := commands.Table.DecodeBatch(b.Encode()); !errors.Is(err, wire.ErrMalformed) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q; read as %+v", err, want, got)
		}
	}
	if got, err := commands.Table.DecodeBatch(sound().Encode()); err != nil {
		t.Errorf("what a sender makes is read as %+v, %v", got, err)
	}
	whole := sound().Encode()
	for want, head := range map[string]byte{"batch of an earlier release": 0x95, "batch of 4 fields": 0x94} {
		if got, err := commands.Table.DecodeBatch(append([]byte{head}, cutLast(t, whole, int(0x96-head))...)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q; read as %+v", err, want, got)
		}
	}
}

// cutLast returns the values of a short array without the last n.
func cutLast(t *testing.T, whole []byte, n int) []byte {
	t.Helper()
	r := wire.NewReader(whole)
	var kept []byte
	for range r.Array() - n {
		kept = append(kept, r.Raw()...)
	}
	if r.Err() != nil {
		t.Fatal(r.Err())
	}
	return kept
}

// What comes from another process may be anything that can be written.
func TestAnswers_ThatNobodyGivesAreRefused(t *testing.T) {
	of := func(m any) []byte { return message.Encode(m) }
	type row struct {
		Behavior          string
		Status, Substatus uint64
		Tasks             int64
	}
	type counts struct {
		Tasks int64
		Rows  []row
	}
	type page struct {
		Tasks   [][]byte
		Seen    []int64
		Before  uint64
		Until   int64
		Done    bool
		Scanned int64
		Cluster string
		Head    uint64
	}
	readPage := func(b []byte) error { _, err := command.DecodePage(b); return err }
	readTallies := func(b []byte) error { _, err := command.DecodeTallies(b); return err }
	readAnswers := func(b []byte) error { _, err := command.DecodeAnswers(b); return err }
	readMessage := func(b []byte) error { _, err := decodeMessage(b); return err }
	lane := &command.Batch{Lane: command.LaneCount - 1, Number: 1}
	for _, c := range []struct {
		want string
		read func([]byte) error
		data []byte
	}{
		{"", readPage, of(page{Scanned: 1 << 30})},
		{"page of 0 tasks with 1 sightings", readPage, of(page{Seen: []int64{1}})},
		{"page of 1001 tasks, at most 1000", readPage, of(page{Tasks: make([][]byte, 1001), Seen: make([]int64, 1001)})},
		{"page that looked at -1 tasks", readPage, of(page{Scanned: -1})},
		{"page that looked at 1073741825 tasks", readPage, of(page{Scanned: 1<<30 + 1})},
		{"", readTallies, of(counts{3, []row{{"a", 4, uint64(task.SubCancelled), 1}, {"b", 1, 1, 2}}})},
		{"1 tasks of status 5", readTallies, of(counts{1, []row{{"a", 5, 1, 1}}})},
		{"1 tasks of status 1 and substatus ", readTallies, of(counts{1, []row{{"a", 1, uint64(task.SubCancelled) + 1, 1}}})},
		{"-1 tasks of status 1", readTallies, of(counts{-1, []row{{"a", 1, 1, -1}}})},
		{"4 tasks, of which 1 are in no row", readTallies, of(counts{4, []row{{"a", 1, 1, 3}}})},
		{"9520 counts, at most 9519", readTallies, of(counts{0, make([]row, 9520)})},
		{"", readAnswers, []byte{0x91, 0x93, 0, 0, 0}},
		{"answer of 4 fields", readAnswers, []byte{0x91, 0x94, 0, 0, 0, 0}},
		{"answer of 2 fields", readAnswers, []byte{0x91, 0x92, 0, 0}},
		{"", readMessage, command.EncodeAnswerMessage(store.MaxShards-1, lane, nil, true)},
		{fmt.Sprint("answer from shard ", store.MaxShards), readMessage, command.EncodeAnswerMessage(store.MaxShards, lane, nil, true)},
		{fmt.Sprint("lane ", command.LaneCount), readMessage, command.EncodeAnswerMessage(0, &command.Batch{Lane: command.LaneCount, Number: 1}, nil, true)},
	} {
		if err := c.read(c.data); (err == nil) != (c.want == "") || err != nil && (!errors.Is(err, wire.ErrMalformed) || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
	for _, c := range []*command.List{{Status: uint64(task.Failure) + 1}, {Substatus: uint64(task.SubCancelled) + 1}} {
		if err := command.Check(c); err == nil || !strings.Contains(err.Error(), "there is no status") {
			t.Errorf("%+v: %v", c, err)
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
	for op := uint64(1); commands.Table.New(op) != nil; op++ {
		c := commands.Table.New(op)
		if done, ok := c.(*command.Complete); ok {
			done.How, done.Error = command.Failed, &events.Error{Code: "x", Properties: map[string]string{"a": "b"}}
		}
		all.Commands = append(all.Commands, c)
	}
	fuzzed(f, commands.Table.DecodeBatch, (*command.Batch).Encode, all.Encode())
}
