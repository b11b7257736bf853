package works_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/works"
	"taskledger/events"
	fold "taskledger/projection/works"
	"taskledger/task"
	"taskledger/work/workledger"
)

// streamed is a world with a stream whose attempt has the bucket.
func streamed(t tb, change ...func(*events.WorkPartition)) *world {
	t.Helper()
	w := newWorld(t)
	w.submit(task.Policy{})
	w.start(parent, "n-1")
	p := part("all", 1, 1)
	p.Form = events.FormPrecise
	for _, f := range change {
		f(&p)
	}
	w.plan("5f", p)
	w.begin(1)
	if m := w.take(parent); m.Bucket != 1 {
		t.Fatalf("the bucket of the stream: %+v", m)
	}
	return w
}

// startHold starts the task of a hold, once it is due.
func (w *world) startHold(n uint32, node string) {
	w.t.Helper()
	if is := w.task(hold(n)); is != nil {
		w.now = max(w.now, is.Due)
	}
	w.start(hold(n), node)
}

// again starts the parent once more and has it take the bucket of the stream.
func (w *world) again() {
	w.t.Helper()
	w.start(parent, "n-2")
	w.plan("5f", part("all", 1, 1))
	w.take(parent)
}

// record returns the record of the stream of the attempt that a task runs.
func (w *world) record(id events.TaskID) *works.Stream {
	w.t.Helper()
	name, started, node := w.attempt(id)
	return works.NewStream(works.Asks{
		Ask: func(_ context.Context, _ int, c command.Command) (command.Answer, error) { return w.decide(c), nil },
		Read: func(_ context.Context, _ int, c command.Command) (command.Answer, error) {
			found, _ := w.Answer(c, w.now, command.Budget{})
			return found.Answer(), nil
		},
		Shards: 1,
	}, works.Attempt{Task: events.TaskID(name), Started: events.Ref(started), Node: node})
}

// moveTo moves a stream by a Move that is to be recorded.
func (w *world) moveTo(s *works.Stream, m workledger.Move) {
	w.t.Helper()
	if moved, err := s.Move(context.Background(), m); err != nil || len(moved.Freed) > 0 {
		w.t.Fatalf("moved: %+v, %v", moved, err)
	}
}

func (w *world) position(s *works.Stream) workledger.Position {
	w.t.Helper()
	p, err := s.Position(context.Background())
	if err != nil {
		w.t.Fatalf("%v", err)
	}
	return p
}

// held reports changes of a hold and returns the names of those that are left.
func (w *world) held(s *works.Stream, processed int) string {
	w.t.Helper()
	left, err := s.Held(context.Background(), processed)
	if err != nil {
		w.t.Fatalf("%v", err)
	}
	var names []string
	for _, c := range left {
		names = append(names, c.At)
	}
	return strings.Join(names, " ")
}

// begins holds a change of a new hold.
func begins(key, at string) workledger.Hold {
	return workledger.Hold{Key: key, Change: workledger.HeldChange{At: at, Data: []byte(`"` + at + `"`), Code: "boom", Message: "it bursts"}}
}

// follows holds a later change of the key of a hold.
func follows(key, at string) workledger.Hold {
	return workledger.Hold{Key: key, Append: true, Change: workledger.HeldChange{At: at, Data: []byte(`"` + at + `"`)}}
}

func holds(all ...workledger.Hold) workledger.Move { return workledger.Move{Holds: all} }

func hold(n uint32) events.TaskID { return events.HoldID(parent, n) }

func (w *world) stream() *fold.Stream { return w.work().Stream }

func TestStream_TheTokenOutlivesAttemptsRunsAndResets(t *testing.T) {
	t.Parallel()
	w := streamed(t)
	s := w.record(parent)
	if p := w.position(s); p.Token != "" || p.Until != "" || len(p.Held) > 0 {
		t.Errorf("a new stream begins at %+v", p)
	}
	w.moveTo(s, workledger.Move{Token: "3", Items: workledger.Counts{Done: 3}, Open: 2, Oldest: time.UnixMilli(int64(w.now))})
	w.lose("n-1")
	w.now += 3_600_000
	w.again()
	s = w.record(parent)
	if p := w.position(s); p.Token != "3" || p.Counted != 3 {
		t.Errorf("after the loss of its node it goes on at %+v, want 3 behind 3 changes", p)
	}
	w.moveTo(s, workledger.Move{Token: "5", Items: workledger.Counts{Done: 1, Failed: 1}})
	w.move(parent, works.Bucket{Ended: 1})
	if items := w.work().Parts[0].Items; items != (events.ItemCounts{Done: 4, Failed: 1}) {
		t.Errorf("the run has counted %+v", items)
	}
	w.complete(parent, command.Succeeded)
	w.must(&works.Reset{Task: string(parent), What: int64(events.ResetAll)})
	w.operate(parent, command.DoRetry)
	w.start(parent, "n-1")
	p := part("all", 1, 1)
	p.Form = events.FormPrecise
	w.plan("6a", p)
	w.begin(1)
	w.take(parent)
	if p := w.position(w.record(parent)); p.Token != "5" || p.Counted != 0 {
		t.Errorf("the next run begins at %+v, want 5 behind none of its changes", p)
	}
}

func TestStream_OnlyTheAttemptThatHasTheBucketMovesIt(t *testing.T) {
	t.Parallel()
	w := streamed(t)
	zombie := w.record(parent)
	w.lose("n-1")
	if _, err := zombie.Move(context.Background(), workledger.Move{Token: "9"}); err == nil {
		t.Error("an attempt that was lost moves the token")
	}
	w.now += 3_600_000
	w.start(parent, "n-2")
	if _, err := w.record(parent).Position(context.Background()); err == nil {
		t.Error("an attempt without the bucket is told where the stream begins")
	}
	if w.stream() != nil {
		t.Errorf("the stream is %+v", w.stream())
	}
}

func TestStream_WhatIsToldAgainIsNotRecorded(t *testing.T) {
	t.Parallel()
	w := streamed(t)
	s := w.record(parent)
	w.moveTo(s, workledger.Move{Token: "3", Open: 1})
	before := len(w.told)
	w.moveTo(s, workledger.Move{Token: "3", Open: 1})
	w.moveTo(s, workledger.Move{Open: 1})
	if len(w.told) != before {
		t.Errorf("%d events tell what is known", len(w.told)-before)
	}
}

func TestStream_AFullPartitionBeginsWhereItsSimulationDidAndEndsWhereThatEnded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.submit(task.Policy{})
	w.start(parent, "n-1")
	try, all := part("try", 1, 1), part("all", 1, 1)
	try.Form, all.Form, try.Mode = events.FormPrecise, events.FormPrecise, events.ModeSimulate
	w.plan("5f", try, all)
	w.begin(1)
	w.take(parent)
	s := w.record(parent)
	w.moveTo(s, workledger.Move{Token: "7"})
	if p := w.position(s); p.Token != "7" || p.Until != "" || w.stream().Token != "" {
		t.Errorf("the simulation goes on at %+v, the token is %q", p, w.stream().Token)
	}
	w.move(parent, works.Bucket{Ended: 1, Want: true})
	w.begin(2)
	w.take(parent)
	if p := w.position(s); p.Token != "" || p.Until != "7" {
		t.Errorf("the full partition begins at %+v, want the beginning, until 7", p)
	}
	w.moveTo(s, workledger.Move{Token: "7"})
	if w.stream().Token != "7" {
		t.Errorf("the token is %q", w.stream().Token)
	}
}

func TestStream_AHoldIsATaskWithTheOpenChangesOfItsKeyInOrder(t *testing.T) {
	t.Parallel()
	w := streamed(t)
	s := w.record(parent)
	w.moveTo(s, workledger.Move{Token: "1", Holds: []workledger.Hold{begins("k", "1"), follows("k", "3")}})
	is := w.task(hold(1))
	if is == nil || is.Kind.Behavior != "work" || is.Kind.Policy.Every != 0 || is.Suspended {
		t.Fatalf("the task of the hold is %+v", is)
	}
	if p := w.position(s); len(p.Held) != 1 || p.Token != "1" {
		t.Errorf("the position is %+v", p)
	}
	w.startHold(1, "n-3")
	h := w.record(hold(1))
	if left := w.held(h, 0); left != "1 3" {
		t.Errorf("the hold has %s", left)
	}
	w.moveTo(s, holds(follows("k", "4")))
	if left := w.held(h, 2); left != "4" {
		t.Errorf("then it has %s", left)
	}
	if left := w.held(h, 1); left != "" || w.stream().Len() != 0 {
		t.Errorf("in the end it has %s, %d holds", left, w.stream().Len())
	}
	w.complete(hold(1), command.Succeeded)
	if w.task(hold(1)) != nil {
		t.Error("the task of a hold that has ended is there")
	}
	moved, err := s.Move(context.Background(), workledger.Move{Token: "5", Holds: []workledger.Hold{begins("z", "6"), follows("k", "5")}})
	if err != nil || len(moved.Freed) != 1 || moved.Freed[0] != "k" || w.stream().Token != "1" || w.stream().Len() != 0 {
		t.Errorf("a move with a change of a hold that is gone: %+v, %v, token %q", moved, err, w.stream().Token)
	}
}

// The token by which a stream goes on with a key is above those of all attempts of the hold, and below those of what
// comes after it, whether the hold has processed its changes or was deleted.
func TestStream_GoesOnBehindAHoldAboveTheTokensOfItsAttempts(t *testing.T) {
	t.Parallel()
	w := streamed(t)
	s := w.record(parent)
	began := func(id events.TaskID) uint64 {
		_, started, _ := w.attempt(id)
		return started
	}
	if fence := w.position(s).Fence; fence < began(parent) {
		t.Errorf("the stream begins with %d, its attempt with %d", fence, began(parent))
	}
	var last uint64
	for n := uint32(1); n <= 2; n++ {
		w.moveTo(s, holds(begins("k", fmt.Sprint(n))))
		w.startHold(n, "n-3")
		if last >= began(hold(n)) {
			t.Errorf("hold %d begins with %d, behind %d", n, began(hold(n)), last)
		}
		last = began(hold(n))
		if n == 1 {
			w.held(w.record(hold(n)), 1)
		} else {
			w.complete(hold(n), command.Failed, func(c *command.Complete) { c.ByPolicy = false })
			w.operate(hold(n), command.DoDelete)
		}
		moved, err := s.Move(context.Background(), holds(follows("k", "5")))
		if err != nil || len(moved.Freed) != 1 || moved.Fence <= last {
			t.Errorf("behind hold %d of token %d: %+v, %v", n, last, moved, err)
		}
		last = moved.Fence
	}
	if fence := w.position(s).Fence; fence < last {
		t.Errorf("the position has %d behind %d", fence, last)
	}
	last = w.position(s).Fence
	w.lose("n-1")
	w.now += 3_600_000
	w.again()
	if is := began(parent); is <= last {
		t.Errorf("the next attempt begins with %d, behind %d", is, last)
	}
}

func TestStream_AChangeThatComesAgainIsHeldOnce(t *testing.T) {
	t.Parallel()
	w := streamed(t)
	w.moveTo(w.record(parent), holds(begins("k", "1"), follows("k", "2"), follows("k", "3")))
	w.startHold(1, "n-3")
	h := w.record(hold(1))
	w.lose("n-1")
	w.now += 3_600_000
	w.again()
	s := w.record(parent)
	w.moveTo(s, holds(follows("k", "1"), follows("k", "2")))
	w.moveTo(s, holds(follows("k", "3"), follows("k", "4"), follows("k", "4")))
	if left := w.held(h, 0); left != "1 2 3 4" {
		t.Errorf("the hold has %s, want each change once", left)
	}
}

// What was processed before it comes again is processed again, and so is what came behind it: otherwise it would be the
// last.
func TestStream_ChangesBehindOneThatIsProcessedAgainFollowItAgain(t *testing.T) {
	t.Parallel()
	w := streamed(t)
	w.moveTo(w.record(parent), holds(begins("k", "1"), follows("k", "2"), follows("k", "3")))
	w.startHold(1, "n-3")
	h := w.record(hold(1))
	w.held(h, 0)
	w.held(h, 1)
	w.lose("n-1")
	w.now += 3_600_000
	w.again()
	w.moveTo(w.record(parent), holds(follows("k", "1"), follows("k", "2"), follows("k", "3")))
	if left := w.held(h, 0); left != "2 3 1 2 3" {
		t.Errorf("the hold has %s", left)
	}
}

// The attempt that brought it again may have ended before it brought the others.
func TestStream_ChangesFollowOneThatWasProcessedAgainAlsoIfAnotherAttemptBringsThem(t *testing.T) {
	t.Parallel()
	w := streamed(t)
	again := func() *works.Stream {
		w.lose(w.task(parent).Node)
		w.now += 3_600_000
		w.again()
		return w.record(parent)
	}
	w.moveTo(w.record(parent), holds(begins("k", "4"), follows("k", "6")))
	w.moveTo(again(), holds(follows("k", "2")))
	w.moveTo(again(), holds(follows("k", "4"), follows("k", "6")))
	w.moveTo(again(), holds(follows("k", "6")))
	w.startHold(1, "n-3")
	if left := w.held(w.record(hold(1)), 0); left != "4 6 2 4 6" {
		t.Errorf("the hold has %s", left)
	}
}

func TestStream_AHoldsReportThatComesTwiceCountsOnce(t *testing.T) {
	t.Parallel()
	w := streamed(t)
	w.moveTo(w.record(parent), holds(begins("k", "1"), follows("k", "2")))
	w.startHold(1, "n-3")
	c := &works.Held{Processed: 1}
	c.Task, c.Started, c.Node = w.attempt(hold(1))
	w.must(c)
	w.must(c)
	if left := w.held(w.record(hold(1)), 0); left != "2" {
		t.Errorf("the hold has %s, want 2", left)
	}
}

func TestStream_AParkedChangeWaitsForAnOperatorAndLaterOnesPassItIfTheyMay(t *testing.T) {
	t.Parallel()
	w := streamed(t)
	s := w.record(parent)
	passed, waits := begins("k", "1"), begins("z", "2")
	passed.Parked, passed.Passed, waits.Parked = true, true, true
	w.moveTo(s, holds(passed, waits))
	w.moveTo(s, holds(passed)) // it comes again
	if !w.task(hold(1)).Suspended || !w.task(hold(2)).Suspended || w.task(hold(3)) != nil {
		t.Error("the tasks of parked changes are not suspended, or are there twice")
	}
	if p := w.position(s); len(p.Held) != 1 {
		t.Errorf("keys that wait: %v, want that of the second", p.Held)
	}
	if got := w.show().Stream; got.Parked != 2 || got.Retried != 0 || got.Keys != 1 || got.Changes != 2 {
		t.Errorf("it shows %+v", got)
	}
	w.operate(hold(1), command.DoDelete)
	w.operate(hold(2), command.DoResume)
	w.startHold(2, "n-3")
	if left := w.held(w.record(hold(2)), 0); left != "2" || w.stream().Len() != 1 {
		t.Errorf("resumed, it has %s, %d holds are left", left, w.stream().Len())
	}
}

func TestStream_AHoldThatFailsForGoodKeepsItsKeyUntilItIsRetriedOrDeleted(t *testing.T) {
	t.Parallel()
	w := streamed(t)
	s := w.record(parent)
	w.moveTo(s, holds(begins("k", "1"), begins("z", "2")))
	for n := range uint32(2) {
		w.startHold(n+1, "n-3")
		w.complete(hold(n+1), command.Failed, func(c *command.Complete) { c.ByPolicy = false })
	}
	w.now += 1000 * 24 * 3_600_000
	w.rest()
	w.state.Seal(&events.Entry{Number: w.state.Number + 1, Time: w.now})
	if p := w.position(s); len(p.Held) != 2 || w.show().Stream.Failed != 2 {
		t.Fatalf("after years %d keys wait, %+v", len(p.Held), w.show().Stream)
	}
	w.operate(hold(1), command.DoDelete)
	w.operate(hold(2), command.DoRetry)
	w.startHold(2, "n-3")
	h := w.record(hold(2))
	w.held(h, 0)
	w.held(h, 1)
	w.complete(hold(2), command.Succeeded)
	if p := w.position(s); len(p.Held) != 0 || w.task(hold(1)) != nil || w.task(hold(2)) != nil {
		t.Errorf("%d keys wait", len(p.Held))
	}
}

// A key that is busy has its hold go on, and each of its changes may have as many attempts as the policy says.
func TestStream_TriesOfAHoldCountAnewWithEachChangeThatIsProcessed(t *testing.T) {
	t.Parallel()
	w := streamed(t)
	s := w.record(parent)
	w.moveTo(s, holds(begins("k", "1")))
	attempts := w.task(parent).Kind.Policy.MaxAttempts
	lost := 0
	for n := range 2 * attempts {
		w.moveTo(s, holds(follows("k", fmt.Sprint(n+2))))
		w.startHold(1, "n-3")
		h := w.record(hold(1))
		w.held(h, 0)
		w.held(h, 1)
		w.complete(hold(1), command.Failed)
		if n%4 == 3 {
			w.startHold(1, "n-4")
			w.lose("n-4")
			lost++
		}
	}
	if most := w.task(hold(1)).Kind.Policy.MaxLost; lost <= most {
		t.Fatalf("%d losses of %d: nothing is shown", lost, most)
	}
	if is := w.task(hold(1)); is.Final() {
		t.Fatalf("it has ended though each attempt got on: %+v", is.Error)
	}
	for n := range attempts - 1 {
		if w.task(hold(1)).Final() {
			t.Fatalf("it has ended with %d attempts on one change, want %d", n+1, attempts)
		}
		w.startHold(1, "n-3")
		w.held(w.record(hold(1)), 0)
		w.complete(hold(1), command.Failed)
	}
	if !w.task(hold(1)).Final() {
		t.Errorf("it goes on after %d attempts on one change", attempts)
	}
}

func TestStream_IsStoppedByItsLimitsWithNothingOfTheMoveRecorded(t *testing.T) {
	t.Parallel()
	large := func(at string) workledger.Hold {
		h := begins("k", at)
		h.Change.Data = bytes.Repeat([]byte("1"), events.MaxHeldBytes/2+1)
		return h
	}
	many := func(from, n int) (m workledger.Move) {
		for i := range n {
			m.Holds = append(m.Holds, follows("k", fmt.Sprint(from+i)))
		}
		return m
	}
	for name, c := range map[string]struct {
		before []workledger.Move
		last   workledger.Move
		want   string
	}{
		"changes of a key": {[]workledger.Move{holds(begins("k", "0")), many(1, 500), many(501, 499)}, many(1000, 1), `key "k" has more than 1000 changes`},
		"bytes of a key":   {[]workledger.Move{holds(large("1"))}, workledger.Move{Token: "9", Holds: []workledger.Hold{large("2")}}, "take more than 196608 bytes"},
	} {
		w := streamed(t)
		s := w.record(parent)
		for _, m := range c.before {
			w.moveTo(s, m)
		}
		before := len(w.stream().Hold(1).Changes)
		w.refusedByHolds(s, &c.last)
		if _, err := s.Move(context.Background(), c.last); err == nil {
			t.Errorf("%s: one more is recorded", name)
		}
		is := w.task(parent)
		if !is.Final() || is.Error.Code != events.CodeHolds || !strings.Contains(is.Error.Message, c.want) ||
			is.Error.Properties["hold"] != string(hold(1)) {
			t.Errorf("%s: the stream has %s, %+v", name, is.Status, is.Error)
		}
		if w.stream().Token != "" || len(w.stream().Hold(1).Changes) != before {
			t.Errorf("%s: token %q, %d changes", name, w.stream().Token, len(w.stream().Hold(1).Changes))
		}
	}
}

func TestStream_DeleteOfTheStreamEndsItsHoldsHoweverMany(t *testing.T) {
	t.Parallel()
	w := streamed(t)
	s := w.record(parent)
	var m workledger.Move
	for i := range 150 {
		m.Holds = append(m.Holds, begins(fmt.Sprint(i), fmt.Sprint(i)))
	}
	w.moveTo(s, m)
	w.startHold(7, "n-3")
	w.startHold(8, "n-4")
	w.lose("n-4")
	w.complete(parent, command.Failed, func(c *command.Complete) { c.ByPolicy = false })
	if w.task(hold(1)) == nil || w.task(hold(7)).Cancelled {
		t.Error("the holds end with the run of their stream")
	}
	w.operate(parent, command.DoDelete)
	w.rest()
	if !w.task(hold(7)).Cancelled {
		t.Error("the attempt of a hold goes on whose stream is deleted")
	}
	if left := w.held(w.record(hold(7)), 0); left != "" {
		t.Errorf("the hold of a stream that is deleted has %s", left)
	}
	w.complete(hold(7), command.Succeeded)
	w.rest()
	if n := w.state.Len(); n != 0 || fold.Of(w.state).SpentLen() != 0 || fold.Of(w.state).Bytes() != 0 {
		t.Errorf("%d tasks are left, %d of holds, %d bytes", n, fold.Of(w.state).SpentLen(), fold.Of(w.state).Bytes())
	}
}

func TestStream_CancelAndSuspendLeaveItsHoldsAlone(t *testing.T) {
	t.Parallel()
	w := streamed(t)
	w.moveTo(w.record(parent), holds(begins("k", "1")))
	w.startHold(1, "n-3")
	w.operate(parent, command.DoSuspend)
	w.rest()
	if is := w.task(hold(1)); is.Suspended || is.Cancelled {
		t.Errorf("suspended with its stream: %+v", is.Flags)
	}
	w.operate(hold(1), command.DoSuspend) // by itself it may be
	w.operate(parent, command.DoCancel)
	w.rest()
	if is := w.task(hold(1)); is.Cancelled || is.Final() {
		t.Errorf("cancelled with its stream: %+v", is.Flags)
	}
}

func TestStream_TheLastMoveOfAnAttemptCountsWhileItIsSuspended(t *testing.T) {
	t.Parallel()
	w := streamed(t)
	s := w.record(parent)
	w.operate(parent, command.DoSuspend)
	w.moveTo(s, workledger.Move{Token: "4"})
	if w.stream().Token != "4" {
		t.Errorf("the token is %q", w.stream().Token)
	}
}

func TestStream_ItsTokenIsSetWhileItCannotGoOnAlone(t *testing.T) {
	t.Parallel()
	w := streamed(t)
	w.moveTo(w.record(parent), workledger.Move{Token: "4"})
	c := &works.Reset{Task: string(parent), What: int64(events.ResetToken), Token: []byte("2"), Reason: "restored"}
	if a := w.decide(c); a.Code != command.AnswerState {
		t.Errorf("the token of a stream that runs is set: %d", a.Code)
	}
	w.complete(parent, command.Released)
	if a := w.decide(c); a.Code != command.AnswerState || !strings.Contains(a.Text, "suspend it before") {
		t.Errorf("the token of a stream that may go on is set: %d %s", a.Code, a.Text)
	}
	w.operate(parent, command.DoSuspend)
	if a := w.decide(&works.Reset{Task: string(parent), What: int64(events.ResetToken)}); a.Code != command.AnswerInvalid {
		t.Errorf("the token is set without a reason: %d", a.Code)
	}
	w.must(c)
	if w.stream().Token != "2" {
		t.Errorf("the token is %q", w.stream().Token)
	}
	other := inWork(t, 2, 1, task.Policy{})
	other.complete(parent, command.Failed, func(c *command.Complete) { c.ByPolicy = false })
	if a := other.decide(c); a.Code != command.AnswerState || !strings.Contains(a.Text, "no stream") {
		t.Errorf("the token of a work that is no stream is set: %d %s", a.Code, a.Text)
	}
}

// A stream runs for days: what it has got on since is no reason to give it up.
func TestStream_LossesCountSinceItsTokenMoved(t *testing.T) {
	t.Parallel()
	w := streamed(t)
	most := w.task(parent).Kind.Policy.MaxLost
	for i := range 2 * most {
		w.moveTo(w.record(parent), workledger.Move{Token: fmt.Sprint(i + 1)})
		w.lose(w.task(parent).Node)
		w.now += 24 * 3_600_000
		w.again()
	}
	for range most {
		if !w.task(parent).OnNode() {
			break
		}
		w.lose(w.task(parent).Node)
		w.now += 24 * 3_600_000
		if t := w.task(parent); !t.Final() {
			w.again()
		}
	}
	if is := w.task(parent); !is.Final() || is.Error.Code != events.CodeLost {
		t.Errorf("lost %d times at one token it has %s", most, is.Status)
	}
}

func TestStream_NoSubmitSharesTheTaskOfAHold(t *testing.T) {
	t.Parallel()
	w := streamed(t)
	w.moveTo(w.record(parent), holds(begins("k", "1")))
	policy, err := task.Policy{}.Complete()
	if err != nil {
		t.Fatal(err)
	}
	a := w.decide(&command.Submit{Task: hold(1), Behavior: "work", Policy: policy, Params: events.JSON([]byte("{}")), NotBefore: w.now})
	if a.Code != command.AnswerInvalid {
		t.Errorf("it is shared: %d %s", a.Code, a.Text)
	}
}

func TestStream_AMoveThatNoEntryTakesIsToldByParts(t *testing.T) {
	t.Parallel()
	w := streamed(t)
	m := workledger.Move{Token: "9"}
	for i := range 3 {
		h := begins(fmt.Sprint(i), fmt.Sprint(i))
		h.Change.Data = bytes.Repeat([]byte("1"), events.MaxHeldBytes/2)
		m.Holds = append(m.Holds, h)
	}
	w.moveTo(w.record(parent), m)
	if w.stream().Len() != 3 || w.stream().Token != "9" {
		t.Errorf("%d holds, token %q", w.stream().Len(), w.stream().Token)
	}
}

// The attempt that meets a threshold still tells how far the stream is, so that what it has processed does not come
// again.
func TestStream_AThresholdLeavesTheAttemptToEndIt(t *testing.T) {
	t.Parallel()
	w := streamed(t, func(p *events.WorkPartition) {
		p.Thresholds = []events.WorkThreshold{{Counter: "deletes", Limit: 2}}
	})
	if m := w.permit(parent, "deletes", 1, 2, 3); len(m.Granted) != 1 || m.Granted[0] != 3 || m.State != int64(works.Go) {
		t.Errorf("three permits of two: %+v", m)
	}
	w.moveTo(w.record(parent), workledger.Move{Token: "2", Items: workledger.Counts{Done: 2}})
	if w.stream().Token != "2" || w.task(parent).Final() {
		t.Errorf("the token is %q, and the task %s", w.stream().Token, w.task(parent).Status)
	}
	if m := w.permit(parent, "deletes", 4); m.Granted[0] != 0 {
		t.Errorf("one more: %+v", m)
	}
}

func TestExplain_SaysHowFarAStreamIsAndWhoHasItsChanges(t *testing.T) {
	w := streamed(t)
	if text := w.Tell(w.task(parent), w.now); text != "" {
		t.Errorf("of a stream that nothing has come to it is said %s", text)
	}
	s := w.record(parent)
	w.moveTo(s, workledger.Move{
		Token:  "1",
		Open:   12,
		Oldest: time.UnixMilli(int64(w.now)),
		Items:  workledger.Counts{Done: 3, Failed: 1},
		Holds:  []workledger.Hold{begins("k", "1"), follows("k", "3")},
	})
	const (
		lag    = `its stream has the token "1" and is 12 changes behind, of which the oldest came 1m30s ago`
		rate   = "; it has processed 4 changes in the last 1m30s"
		failed = "; 1 change could not be processed in this run"
		held   = "; 2 changes are held apart, by task a/p.h1 and so on, and later ones of 1 key wait for them: " +
			"1 retried, 0 parked, 0 failed"
	)
	w.now += 90_000
	says := func(what, want string) {
		if text := w.Tell(w.task(parent), w.now); text != want {
			t.Errorf("%s: %s", what, text)
		}
	}
	says("it runs", lag+rate+failed+held)
	w.operate(parent, command.DoSuspend)
	w.complete(parent, command.Released)
	says("it is suspended", lag+failed+held)
	const holds = `it holds 2 changes of the key "k" of the stream of task a/p, from "1" on`
	if text := w.Tell(w.task(hold(1)), w.now); text != holds {
		t.Errorf("its hold: %s", text)
	}
	if _, err := w.look(hold(1)); err == nil || !strings.Contains(err.Error(), "holds changes of the stream of task a/p") {
		t.Errorf("the work of its hold: %v", err)
	}
	w.operate(parent, command.DoResume)
	w.again()
	s = w.record(parent)
	w.startHold(1, "n-3")
	w.held(w.record(hold(1)), 2)
	w.moveTo(s, workledger.Move{Token: "3"})
	w.operate(parent, command.DoSuspend)
	w.complete(parent, command.Released)
	says("nobody knows what has come", `its stream has the token "3"`+failed)
	w.operate(parent, command.DoResume)
	w.again()
	w.record(parent)
	w.move(parent, works.Bucket{Ended: 1})
	w.complete(parent, command.Succeeded)
	says("it has ended", `its stream has the token "3" and is 0 changes behind`+rate+failed)
}

func TestExplain_SaysOfAStreamThatHasFailedWhatItToldLast(t *testing.T) {
	w := streamed(t)
	w.moveTo(w.record(parent), workledger.Move{Token: "2", Open: 3, Oldest: time.UnixMilli(int64(w.now))})
	w.lose("n-1")
	w.now += 3_600_000
	w.again()
	s := w.record(parent)
	if p := w.position(s); p.Open != 3 {
		t.Errorf("the next attempt is told that %d changes were open, want 3", p.Open)
	}
	fails := func(want string) {
		w.complete(parent, command.Failed, func(c *command.Complete) { c.ByPolicy = false })
		if text := w.Tell(w.task(parent), w.now); text != want {
			t.Errorf("it has failed: %s", text)
		}
	}
	fails(`its stream has the token "2" and is 3 changes behind, of which the oldest came 1h0m0s ago`)
	w.operate(parent, command.DoRetry)
	w.again()
	w.moveTo(w.record(parent), workledger.Move{Token: "5"})
	fails(`its stream has the token "5"`)
}

func TestReset_OfATokenSaysThatTheWorkIsNotPlannedYet(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.submit(task.Policy{})
	w.operate(parent, command.DoSuspend)
	a := w.decide(&works.Reset{Task: string(parent), What: int64(events.ResetToken), Token: []byte("7"), Reason: "moved"})
	if a.Code != command.AnswerState || !strings.Contains(a.Text, "not planned: its first attempt") {
		t.Errorf("%d, %s", a.Code, a.Text)
	}
	a = w.decide(&works.Reset{Task: "nobody", What: int64(events.ResetToken), Token: []byte("7"), Reason: "moved"})
	if a.Code != command.AnswerNotFound {
		t.Errorf("of no task: %d, %s", a.Code, a.Text)
	}
}
