package shard_test

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/commands"
	"taskledger/engine/internal/sender"
	"taskledger/events"
	"taskledger/internal/wire"
	"taskledger/projection"
	"taskledger/store"
)

// forget lets so much time pass in the journal that the shard knows no number that was used before.
func (b *fixture) forget() {
	b.Helper()
	for i := range 70 { // of the time between two entries a minute counts
		b.time = b.time.Add(time.Minute)
		c := submitOf(events.Policy{})
		c.Task, c.NotBefore = events.TaskID(fmt.Sprint("later-", i)), b.time.Add(24*time.Hour)
		b.accept(command.LaneSubmit, c)
	}
}

// Somebody without the key has recorded a batch, and repeats it when its number is forgotten. Nothing in the
// journal may say that its sender has asked again.
func TestBatch_RepeatedAfterItsNumberIsForgottenIsNotDecidedAgain(t *testing.T) {
	for name, c := range map[string]command.Command{
		"delete": operate(command.DoDelete), "cancel": operate(command.DoCancel), "suspend": operate(command.DoSuspend),
		"submit": &command.Submit{Task: "x", Behavior: benchBehavior, Policy: policyOf(events.Policy{Existing: events.RunAgain})},
		"pause":  &command.Pause{Behavior: benchBehavior, Paused: true},
	} {
		b := newFixture(t)
		if name != "submit" {
			b.submit(events.Policy{})
		}
		recorded := b.next("caller", command.LaneSubmit, c)
		b.deliver(recorded)
		b.turn()
		if len(recorded.got) != 1 || recorded.got[0][0].Code != command.AnswerOK {
			t.Fatalf("%s: answered %+v", name, recorded.got)
		}
		switch name { // so that it could be done again
		case "delete", "cancel":
			b.submit(events.Policy{Existing: events.RunAgain})
		case "suspend":
			b.accept(command.LaneSubmit, operate(command.DoResume))
		case "pause":
			b.accept(command.LaneSubmit, &command.Pause{Behavior: benchBehavior, Paused: false})
		case "submit":
			b.accept(command.LaneSubmit, operate(command.DoCancel))
		}
		b.forget()
		b.takeOver()
		if b.own.State().Decided(projection.SenderLane{Sender: "caller", Lane: command.LaneSubmit}) != nil {
			t.Fatalf("%s: the number is still known", name)
		}
		entries := b.sealed()
		for _, again := range []func(*letter){b.deliver, b.post} {
			again(recorded)
			b.turn()
		}
		if b.sealed() != entries {
			kinds := b.kinds()
			t.Errorf("%s: the repeated batch led to %s", name, kinds[len(kinds)-1])
		}
		for _, answers := range recorded.got[1:] {
			if answers[0].Code != command.AnswerClock {
				t.Errorf("%s: answered %+v, want it refused as too old", name, answers)
			}
		}
	}
}

// A caller whose clock is wrong learns it, definitely and with both clocks; a resend of an honest one is in time.
func TestBatch_FromAWrongClockIsRefusedNamingBoth(t *testing.T) {
	for ahead, refused := range map[time.Duration]bool{
		-sender.GiveUp: false, -command.MaxBatchAge: false, -command.MaxBatchAge - time.Second: true, -24 * time.Hour: true,
		command.MaxBatchAhead: false, command.MaxBatchAhead + time.Second: true, 24 * time.Hour: true, 1 << 62: true, -1 << 62: true,
	} {
		b := newFixture(t)
		l := b.next("caller", command.LaneSubmit, submitOf(events.Policy{}))
		l.batch.Made = b.time.Add(ahead)
		b.deliver(l)
		b.turn()
		a := l.got[0][0]
		if is := a.Code == command.AnswerClock; is != refused || is == (b.own.State().Task("x") != nil) {
			t.Errorf("%s ahead: answered %+v, refused %t; want %t", ahead, a, is, refused)
		}
		var invalid *store.InvalidError
		if !refused {
			continue
		}
		if err := a.Err("x"); !errors.As(err, &invalid) || invalid.Field != "clock" || !strings.Contains(invalid.Problem, "2020-02-29T12:00:00Z") ||
			!strings.Contains(invalid.Problem, l.batch.Made.Time().UTC().Format(time.RFC3339)) && ahead.Abs() < time.Hour*48 {
			t.Errorf("%s ahead: %v, want both clocks", ahead, err)
		}
		done := b.next("caller", command.LaneSubmit, &command.Barrier{Number: l.batch.Number})
		done.batch.Made = l.batch.Made
		b.deliver(done)
		b.turn()
		if a := done.got[0][0]; a.Code != command.AnswerOK || a.Data != nil {
			t.Errorf("%s ahead: the refusal cannot be settled: %+v", ahead, a)
		}
	}
}

// A node whose clock is wrong goes on with what it runs: its outcomes count.
func TestBatch_OfWorkCountsWhateverTheClock(t *testing.T) {
	b := newFixture(t)
	b.submit(events.Policy{})
	_, task := b.assign()
	l := b.next("far sender", command.LaneWork, report(task, command.Succeeded))
	l.batch.Made -= events.Millis((24 * time.Hour).Milliseconds())
	b.deliver(l)
	b.turn()
	if a := l.got[0][0]; a.Code != command.AnswerOK || !b.own.State().Task("x").Final() {
		t.Errorf("answered %+v", a)
	}
}

// The form of a batch, on the bus and in the mailbox.
func TestBatch_FormIsPinned(t *testing.T) {
	b := &command.Batch{Sender: "c-1", Lane: command.LaneSubmit, Number: 7, Made: 1_800_000_000_000, Principal: "ada",
		Commands: []command.Command{&command.Operate{Task: "x", Do: command.DoDelete, Reason: "r"}}}
	const golden = "96a3632d310007cf000001a3185c5000a36164619205c40794a17805a17200"
	if got := hex.EncodeToString(b.Encode()); got != golden {
		t.Errorf("encoded as\n%s, want\n%s", got, golden)
	}
	const before = "95a3632d310007a3616461920593a17805a172" // it did not say when it was made
	data, err := hex.DecodeString(before)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := commands.Table.DecodeBatch(data); !errors.Is(err, wire.ErrMalformed) || !strings.Contains(err.Error(), "earlier release") {
		t.Errorf("of an earlier release: %v", err)
	}
}
