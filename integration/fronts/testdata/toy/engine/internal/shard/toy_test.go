package shard_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/shard"
	"taskledger/engine/internal/toyfront"
	"taskledger/events"
	"taskledger/projection"
	"taskledger/projection/toy"
)

// newToy returns an owner with the toy, and the counts for which its bell rang.
func newToy(t *testing.T) (*fixture, *[]uint64) {
	b := newFixture(t)
	rang := new([]uint64)
	b.cfg.Extensions = append(b.cfg.Extensions, toyfront.AtOwner(func(count uint64) { *rang = append(*rang, count) }))
	b.takeOver()
	return b, rang
}

// end lets an attempt of task "x" end.
func (b *fixture) end(how command.Completion) {
	b.Helper()
	_, t := b.assign()
	b.accept(command.LaneWork, report(t, how))
}

func TestToy_CountsTheEndOfEveryAttemptInItsEntry(t *testing.T) {
	b, _ := newToy(t)
	b.submit(events.Policy{})
	b.end(command.Released)
	b.assign()
	b.lose()
	b.turn()
	b.end(command.Succeeded)
	ends := 0
	for _, data := range b.store.entries {
		e, err := events.Decode(data)
		if err != nil {
			t.Fatal(err)
		}
		for i := range e.Events {
			switch e.Events[i].Kind() {
			case events.KindReleased, events.KindLost, events.KindSucceeded:
				ends++
				if i+1 == len(e.Events) || e.Events[i+1].Kind() != events.KindToyCounted {
					t.Errorf("%s is not followed by its count", e.Events[i].Kind())
				}
			}
		}
	}
	if ends != 3 || b.count(events.KindToyCounted) != ends {
		t.Errorf("%d attempts, %d counted", ends, b.count(events.KindToyCounted))
	}
	if a := b.ask(command.LaneQuery, &toyfront.Ask{}); a.Number != int64(ends) {
		t.Errorf("answered %+v, want %d", a, ends)
	}
}

// An older node could not read the shard: the end of the attempt is recorded, and nothing follows it.
func TestToy_CountsNothingWhileANodeCannotReadIt(t *testing.T) {
	b, _ := newToy(t)
	b.submit(events.Policy{})
	old := b.store.members.Nodes[farID]
	old.Reads.Kind = events.KindToyCounted - 1
	b.store.members.Nodes[farID] = old
	b.end(command.Succeeded)
	if b.count(events.KindSucceeded) != 1 || b.count(events.KindToyCounted) != 0 {
		t.Errorf("the shard has %s", b.kinds())
	}
}

func TestToy_RingsAtATimeThatWasPreparedBesideTheTurns(t *testing.T) {
	b, rang := newToy(t)
	b.submit(events.Policy{})
	b.end(command.Succeeded)
	b.turn() // prepares
	b.turn() // takes what was prepared
	bell := submitOf(events.Policy{})
	bell.Task = "bell"
	b.accept(command.LaneSubmit, bell)
	if a := b.ask(command.LaneQuery, &command.Explain{Task: "bell"}); !strings.Contains(string(a.Data), "until the bell has rung") {
		t.Errorf("explained by %q", a.Data)
	}
	if len(*rang) != 0 {
		t.Errorf("the bell rang before its time: %v", *rang)
	}
	b.time = b.time.Add(2 * time.Minute)
	b.turn()
	b.turn()
	if !slices.Equal(*rang, []uint64{1}) || b.count(events.KindToyRang) != 1 {
		t.Errorf("the bell rang for %v, and is recorded %d times", *rang, b.count(events.KindToyRang))
	}
	b.takeOver()
	if s := toy.Of(b.own.State()); s.Rang != 1 || s.Count != 1 {
		t.Errorf("the next owner has %+v", s)
	}
}

// What nobody asked for waits while an entry is full of what was asked for.
func TestToy_RingsInTheNextEntryWhereOneIsFull(t *testing.T) {
	b, rang := newToy(t)
	b.submit(events.Policy{})
	b.end(command.Succeeded)
	b.turn()
	b.turn()
	b.time = b.time.Add(2 * time.Minute)
	for i := range 3 {
		large := submitOf(events.Policy{})
		large.Task = events.TaskID("large/" + string(rune('a'+i)))
		large.Params = events.JSON([]byte(`"` + strings.Repeat("x", events.SealEntryBytes/2) + `"`))
		b.deliver(b.next("somebody", command.LaneSubmit, large))
	}
	b.turn()
	if n := b.count(events.KindToyRang); n != 0 {
		t.Errorf("a full entry took %d more", n)
	}
	b.turn()
	if !slices.Equal(*rang, []uint64{1}) {
		t.Errorf("the bell rang for %v", *rang)
	}
}

func TestToy_HoldsTheTaskOfTheLastAttemptAgainstRetention(t *testing.T) {
	b, _ := newToy(t)
	run := func(id events.TaskID) {
		t.Helper()
		submit := submitOf(events.Policy{Retain: time.Millisecond, RetainCount: 1})
		submit.Task = id
		b.accept(command.LaneSubmit, submit)
		b.deliver(b.offer())
		b.turn()
		b.accept(command.LaneWork, report(*b.own.State().Task(id), command.Succeeded))
	}
	run("a")
	b.time = b.time.Add(time.Hour)
	run("b")
	if b.own.State().Task("b") == nil {
		t.Error("task b, which is held, is gone")
	}
	b.time = b.time.Add(time.Hour)
	b.accept(command.LaneSubmit, submitOf(events.Policy{}))
	switch s := b.own.State(); {
	case s.Task("a") != nil:
		t.Error("task a, which is held no longer, is there")
	case s.Task("b") == nil:
		t.Error("task b, which is held, is gone")
	}
	restored := restored(t, b.own.State())
	if restored.Digest(nil) != b.own.State().Digest(nil) || restored.Task("b") == nil || toy.Of(restored).Held != "b" {
		t.Error("restored from a snapshot, the shard differs")
	}
}

// restored is a state that went through a snapshot.
func restored(t *testing.T, s *projection.Shard) *projection.Shard {
	t.Helper()
	snapshot := s.BeginSnapshot()
	for !snapshot.Step(100) {
	}
	r := projection.NewRestorer(0)
	for _, part := range snapshot.Parts() {
		if err := r.Add(part); err != nil {
			t.Fatal(err)
		}
	}
	again, err := r.Done()
	if err != nil {
		t.Fatal(err)
	}
	return again
}

// The toy has its row in the configuration of every test here.
var _ shard.NewExtension = toyfront.AtOwner(nil)
