package command_test

import (
	"reflect"
	"runtime"
	"testing"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/outcome"
	"taskledger/events"
	"taskledger/projection"
)

// fuzzed runs a decoder on hostile bytes and bounds what it may allocate.
func fuzzed[T any](f *testing.F, decode func([]byte) (T, error), encode func(T) []byte, seeds ...[]byte) {
	for _, seed := range seeds {
		f.Add(seed)
	}
	f.Add([]byte{0xdd, 0x00, 0x00, 0x10, 0x00})
	f.Add(append([]byte{0xdc, 0x10, 0x00}, make([]byte, 4096)...))
	f.Fuzz(func(t *testing.T, data []byte) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		v, err := decode(data)
		runtime.ReadMemStats(&after)
		if got, most := after.TotalAlloc-before.TotalAlloc, 128*uint64(len(data))+64<<10; got > most {
			t.Fatalf("%d bytes allocated to decode %d", got, len(data))
		}
		if err != nil {
			return
		}
		again, err := decode(encode(v))
		if err != nil || !reflect.DeepEqual(again, v) {
			t.Fatalf("written and read again:\n%+v, %v; want\n%+v", again, err, v)
		}
	})
}

// checker has the methods that testing.T and rapid.T share.
type checker interface {
	Helper()
	Fatalf(format string, args ...any)
	Errorf(format string, args ...any)
}

// journalDriver decides commands one entry each, and keeps what they led to.
type journalDriver struct {
	t        checker
	state    *projection.Shard
	builder  events.Builder
	now      events.Millis
	entries  []*events.Entry
	log      []events.Event // of every entry, in order
	outcomes []outcome.Outcome
}

const ledgerStart events.Millis = 1_800_000_000_000

func newJournalDriver(t checker) *journalDriver {
	return &journalDriver{t: t, state: projection.NewShard(0), now: ledgerStart}
}

// entry runs f with a decider and commits what it decided. It returns the kinds of the events.
func (l *journalDriver) entry(f func(d *command.Decider)) (kinds []string) {
	l.t.Helper()
	l.builder.Reset(events.Entry{Number: l.state.Number + 1, Epoch: 1, Owner: "owner", Time: l.now, Prev: l.state.Hash})
	f(&command.Decider{State: l.state, Entry: &l.builder, Now: l.now, Note: func(t *projection.Task, ev *events.Event) {
		if t == nil {
			return
		}
		if o, ok := outcome.Of(t, ev); ok {
			l.outcomes = append(l.outcomes, o)
		}
	}})
	if len(l.builder.Entry.Events)+len(l.builder.Entry.Origins) == 0 {
		return nil
	}
	data, err := l.builder.Seal()
	if err != nil {
		l.t.Fatalf("seal: %v", err)
	}
	stored, err := events.Decode(data)
	if err != nil {
		l.t.Fatalf("decode: %v", err)
	}
	l.state.Seal(&l.builder.Entry)
	l.entries = append(l.entries, stored)
	l.log = append(l.log, stored.Events...)
	for i := range stored.Events {
		kinds = append(kinds, stored.Events[i].Kind().String())
	}
	return kinds
}

// full reports that the entry takes no further command.
func full(d *command.Decider) bool { return d.Entry.Size() >= events.SealEntryBytes }

func (l *journalDriver) decide(c command.Command) (a command.Answer, kinds []string) {
	l.t.Helper()
	kinds = l.entry(func(d *command.Decider) {
		a = d.Decide(c)
		l.legal(d)
	})
	return a, kinds
}

// legal fails when the fold refused what was decided.
func (l *journalDriver) legal(d *command.Decider) {
	l.t.Helper()
	if d.Err != nil {
		l.t.Fatalf("decided what the fold refuses: %v", d.Err)
	}
}

// start starts the task, which must be ready, on a node.
func (l *journalDriver) start(id events.TaskID, node string) {
	l.t.Helper()
	l.entry(func(d *command.Decider) {
		d.Start(l.state.Task(id), node, 0, 9*time.Second)
		l.legal(d)
	})
}

func (l *journalDriver) lose(node string) []string {
	l.t.Helper()
	return l.entry(func(d *command.Decider) {
		if !d.Lose(node) {
			l.t.Fatalf("the entry is full")
		}
		l.legal(d)
	})
}

const ledgerTask events.TaskID = "orders/purge"

func (l *journalDriver) task() *projection.Task { return l.state.Task(ledgerTask) }

// ask is a submit of the ledger's task.
func (l *journalDriver) ask(p events.Policy) *command.Submit {
	complete, err := p.Complete()
	if err != nil {
		l.t.Fatalf("policy: %v", err)
	}
	return &command.Submit{Task: ledgerTask, Behavior: "work", Policy: complete, Params: events.JSON([]byte("1"))}
}

func (l *journalDriver) done(how command.Completion) *command.Complete {
	c := &command.Complete{Task: ledgerTask, Started: l.task().Started, Node: l.task().Node, How: how}
	if how == command.Failed {
		c.Error = &events.Error{Code: "x"}
	}
	return c
}

// situation is a state in which a task can be met.
type situation string

const (
	atNothing      situation = "nothing"
	atCreated      situation = "CREATED, due"
	atDelayed      situation = "CREATED, due in a minute"
	atRunning      situation = "RUNNING"
	atRerun        situation = "RUNNING, to run again"
	atCancelled    situation = "RUNNING, cancelled"
	atRerunCancel  situation = "RUNNING, to run again, cancelled"
	atWaiting      situation = "RUNNING, waiting"
	atSuccess      situation = "SUCCESS, final"
	atSuccessNext  situation = "SUCCESS, next run in a minute"
	atFailure      situation = "FAILURE, final"
	atFailureRetry situation = "FAILURE, retry in a minute"
)

var situations = []situation{atNothing, atCreated, atDelayed, atRunning, atRerun, atCancelled, atRerunCancel, atWaiting,
	atSuccess, atSuccessNext, atFailure, atFailureRetry}

// ledgerAt is a ledger whose task is in the situation.
func ledgerAt(t checker, at situation) *journalDriver {
	t.Helper()
	l := newJournalDriver(t)
	if at == atNothing {
		return l
	}
	first := l.ask(events.Policy{})
	if at == atDelayed {
		first.NotBefore = l.now.Add(time.Minute)
	}
	l.decide(first)
	if at == atCreated || at == atDelayed {
		return l
	}
	l.start(ledgerTask, "n-1")
	in := l.now.Add(time.Minute)
	switch at {
	case atRerun:
		l.decide(l.merge("2"))
	case atCancelled:
		l.decide(&command.Operate{Task: ledgerTask, Do: command.DoCancel})
	case atRerunCancel:
		l.decide(l.merge("2"))
		l.decide(&command.Operate{Task: ledgerTask, Do: command.DoCancel})
	case atWaiting:
		l.lose("n-1")
	case atSuccess:
		l.decide(l.done(command.Succeeded))
	case atSuccessNext:
		c := l.done(command.Succeeded)
		c.Next = in
		l.decide(c)
	case atFailure:
		l.decide(l.done(command.Failed))
	case atFailureRetry:
		c := l.done(command.Failed)
		c.Next = in
		l.decide(c)
	}
	return l
}

func (l *journalDriver) merge(params string) *command.Merge {
	c := &command.Merge{Submit: *l.ask(events.Policy{}), Life: l.task().Created, Seq: l.task().Seq}
	c.Submit.Params = events.JSON([]byte(params))
	return c
}

func policyOf(p events.Policy) events.Policy {
	complete, err := p.Complete()
	if err != nil {
		panic(err)
	}
	return complete
}
