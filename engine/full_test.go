package engine

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"taskledger/projection"
)

// The reply to a refusal was lost: its sender asks again, and must not wait until there is space.
func TestFull_RefusesAgainWhatItRefused(t *testing.T) {
	b := newBench(t, -1)
	refused := map[projection.SenderLane]uint64{}
	l := b.next("sender", laneSubmit, submitOf(Policy{}))
	for range 2 {
		b.deliver(l)
		b.own.refuseNew(refused)
		b.m.tasks.Wait()
	}
	if len(l.got) != 2 || l.got[0][0].code != answerOverload || l.got[1][0].code != answerOverload {
		t.Errorf("told %+v, want two refusals", l.got)
	}
}

// What the entry under way decides is answered when it is committed, not before: its sender only learns, once a copy, that
// it waits for room.
func TestFull_LeavesWhatIsDecidedToItsEntry(t *testing.T) {
	b := newBench(t, -1)
	l := b.next("sender", laneSubmit, submitOf(Policy{}))
	b.own.remember(projection.SenderLane{Sender: "sender", Lane: laneSubmit}, l.batch.number, []answer{{}})
	for copies := 1; copies <= 2; copies++ {
		b.deliver(l)
		for range 2 {
			b.own.refuseNew(map[projection.SenderLane]uint64{})
			b.m.tasks.Wait()
		}
		if len(l.got) != copies || !holdsUp(l.got[copies-1]) || b.own.inbox.size() != 1 {
			t.Errorf("%d copies: told %+v, %d batches wait; want that it waits once each, and one", copies, l.got, b.own.inbox.size())
		}
	}
}

// The answer to a letter is a write.
func TestFull_TellsNothingToASenderOfLetters(t *testing.T) {
	b := newBench(t, -1)
	l := b.next("sender", laneSubmit, &getCommand{Task: "x"})
	b.post(l)
	b.own.refuseNew(map[projection.SenderLane]uint64{})
	b.m.tasks.Wait()
	if len(l.got) != 0 || b.own.inbox.size() != 1 {
		t.Errorf("told %+v, %d batches wait; want none and one", l.got, b.own.inbox.size())
	}
}

func TestRouter_RefusesNewTasksBehindABatchThatWaitsForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWays(t, true)
		submit := func() (chan result, error) {
			got := make(chan result, 2)
			return got, w.send(wayShard, laneSubmit, submitOf(Policy{}), callback(func(a answer, err error) { got <- result{a, err} }))
		}
		refused := func(when string, err error) {
			t.Helper()
			var overload *OverloadError
			if !errors.As(err, &overload) || overload.Cause != fullStore || overload.RetryAfter != time.Second {
				t.Errorf("%s: %v", when, err)
			}
		}
		first, _ := submit()
		held := w.want("at once", 1, 0)
		behind, _ := submit()
		read := w.ask("a")
		w.answer(held, false, answer{code: answerHeld, text: fullStore, number: 1000})
		refused("a task that waited", (<-behind).err)
		_, err := submit()
		refused("a task that comes", err)
		w.wantSilence(first)
		w.wantSilence(read)
		w.answer(held, true, answer{run: 1})
		w.wantResult(first, 1, nil)
		w.answer(w.want("what creates nothing", 1, 0), true, answer{run: 2})
		w.wantResult(read, 2, nil)
		if _, err := submit(); err != nil {
			t.Errorf("when there is room: %v", err)
		}
	})
}
