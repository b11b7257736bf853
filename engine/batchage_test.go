package engine

import (
	"encoding/hex"
	"errors"
	"strings"
	"testing"
	"time"

	"taskledger/events"
	"taskledger/internal/wire"
	"taskledger/projection"
)

// forget lets so much time pass in the journal that the shard knows no number that was used before.
func (b *bench) forget() {
	b.Helper()
	for i := range 7 {
		b.time = b.time.Add(10 * time.Minute)
		c := submitOf(Policy{})
		c.Task, c.NotBefore = events.TaskID("later-"+string(rune('a'+i))), b.time.Add(24*time.Hour)
		b.accept(laneSubmit, c)
	}
}

// Somebody without the key has recorded a batch, and repeats it when its number is forgotten. Nothing in the journal may say that its
// sender has asked again.
func TestBatch_RepeatedAfterItsNumberIsForgottenIsNotDecidedAgain(t *testing.T) {
	for name, c := range map[string]command{
		"delete": operate(doDelete), "cancel": operate(doCancel), "suspend": operate(doSuspend),
		"submit": &submitCommand{Task: "x", Behavior: benchBehavior, Policy: policyOf(Policy{Existing: events.RunAgain})},
		"pause":  &pauseCommand{benchBehavior, true},
	} {
		b := newBench(t, -1)
		if name != "submit" {
			b.submit(Policy{})
		}
		recorded := b.next("caller", laneSubmit, c)
		b.deliver(recorded)
		b.turn()
		if len(recorded.got) != 1 || recorded.got[0][0].code != answerOK {
			t.Fatalf("%s: answered %+v", name, recorded.got)
		}
		switch name { // so that it could be done again
		case "delete", "cancel":
			b.submit(Policy{Existing: events.RunAgain})
		case "suspend":
			b.accept(laneSubmit, operate(doResume))
		case "pause":
			b.accept(laneSubmit, &pauseCommand{benchBehavior, false})
		case "submit":
			b.accept(laneSubmit, operate(doCancel))
		}
		b.forget()
		b.takeOver()
		if b.own.state.Decided(projection.SenderLane{Sender: "caller", Lane: laneSubmit}) != nil {
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
			if answers[0].code != answerClock {
				t.Errorf("%s: answered %+v, want it refused as too old", name, answers)
			}
		}
	}
}

// A caller whose clock is wrong learns it, definitely and with both clocks; a resend of an honest one is in time.
func TestBatch_FromAWrongClockIsRefusedNamingBoth(t *testing.T) {
	for ahead, refused := range map[time.Duration]bool{
		-giveUp: false, -maxBatchAge: false, -maxBatchAge - time.Second: true, -24 * time.Hour: true,
		maxBatchAhead: false, maxBatchAhead + time.Second: true, 24 * time.Hour: true, 1 << 62: true, -1 << 62: true,
	} {
		b := newBench(t, -1)
		l := b.next("caller", laneSubmit, submitOf(Policy{}))
		l.batch.made = b.time.Add(ahead)
		b.deliver(l)
		b.turn()
		a := l.got[0][0]
		if is := a.code == answerClock; is != refused || is == (b.own.state.Task("x") != nil) {
			t.Errorf("%s ahead: answered %+v, refused %t; want %t", ahead, a, is, refused)
		}
		var invalid *InvalidError
		if !refused {
			continue
		}
		if err := a.err("x"); !errors.As(err, &invalid) || invalid.Field != "clock" || !strings.Contains(invalid.Problem, "2020-02-29T12:00:00Z") ||
			!strings.Contains(invalid.Problem, l.batch.made.Time().UTC().Format(time.RFC3339)) && ahead.Abs() < time.Hour*48 {
			t.Errorf("%s ahead: %v, want both clocks", ahead, err)
		}
		done := b.next("caller", laneSubmit, &settleCommand{l.batch.number})
		done.batch.made = l.batch.made
		b.deliver(done)
		b.turn()
		if a := done.got[0][0]; a.code != answerOK || a.data != nil {
			t.Errorf("%s ahead: the refusal cannot be settled: %+v", ahead, a)
		}
	}
}

// A node whose clock is wrong goes on with what it runs: its outcomes count.
func TestBatch_OfWorkCountsWhateverTheClock(t *testing.T) {
	b := newBench(t, -1)
	b.submit(Policy{})
	_, task := b.assign()
	l := b.next("far sender", laneWork, report(task, succeeded))
	l.batch.made -= events.Millis((24 * time.Hour).Milliseconds())
	b.deliver(l)
	b.turn()
	if a := l.got[0][0]; a.code != answerOK || !b.own.state.Task("x").Final() {
		t.Errorf("answered %+v", a)
	}
}

// The form of a batch, on the bus and in the mailbox.
func TestBatch_FormIsPinned(t *testing.T) {
	b := &batch{sender: "c-1", lane: laneSubmit, number: 7, made: 1_800_000_000_000, principal: "ada",
		commands: []command{&operateCommand{Task: "x", Do: doDelete, Reason: "r"}}}
	const golden = "96a3632d310007cf000001a3185c5000a36164619205c40693a17805a172"
	if got := hex.EncodeToString(b.encode()); got != golden {
		t.Errorf("encoded as\n%s, want\n%s", got, golden)
	}
	const before = "95a3632d310007a3616461920593a17805a172" // it did not say when it was made
	data, err := hex.DecodeString(before)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := decodeBatch(data); !errors.Is(err, wire.ErrMalformed) || !strings.Contains(err.Error(), "earlier release") {
		t.Errorf("of an earlier release: %v", err)
	}
}
