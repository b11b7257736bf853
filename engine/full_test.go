package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/outcome"
	"taskledger/events"
	"taskledger/projection"
	"taskledger/store"
)

// The reply to a refusal was lost: its sender asks again, and must not wait until there is space.
func TestFull_RefusesAgainWhatItRefused(t *testing.T) {
	b := newBench(t, -1)
	refused := map[projection.SenderLane]uint64{}
	l := b.next("sender", command.LaneSubmit, submitOf(Policy{}), &command.Operate{Task: "x", Do: command.DoCancel})
	for range 2 {
		b.deliver(l)
		b.own.refuseGathered(refused)
		b.m.tasks.Wait()
	}
	if len(l.got) != 2 || l.got[0][0].Code != command.AnswerOverload || l.got[1][0].Code != command.AnswerOverload {
		t.Errorf("told %+v, want two refusals", l.got)
	}
}

// What the entry under way decides is answered when it is committed, not before: its sender only learns, once a copy, that
// it waits for room.
func TestFull_LeavesWhatIsDecidedToItsEntry(t *testing.T) {
	b := newBench(t, -1)
	l := b.next("sender", command.LaneSubmit, submitOf(Policy{}))
	b.own.remember(projection.SenderLane{Sender: "sender", Lane: command.LaneSubmit}, l.batch.Number, []command.Answer{{}})
	for copies := 1; copies <= 2; copies++ {
		b.deliver(l)
		for range 2 {
			b.own.refuseGathered(map[projection.SenderLane]uint64{})
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
	l := b.next("sender", command.LaneSubmit, submitOf(Policy{}))
	b.post(l)
	b.own.refuseGathered(map[projection.SenderLane]uint64{})
	b.m.tasks.Wait()
	if len(l.got) != 0 || b.own.inbox.size() != 1 {
		t.Errorf("told %+v, %d batches wait; want none and one", l.got, b.own.inbox.size())
	}
}

// An owner that gave its shard up would only have it again, and find no more room.
func TestFull_AnOwnerWaitsUntilItCanSayWhatNodesMustRead(t *testing.T) {
	b := newBench(t, -1)
	b.store.noRoom = 2
	b.accept(command.LaneSubmit, &command.Pause{Behavior: "work", Paused: true})
	if b.store.noRoom != 0 || b.store.members.Written.Kind != events.KindPaused || b.sealed() != 1 {
		t.Errorf("%d calls are left, %+v is written, with %d entries", b.store.noRoom, b.store.members.Written, b.sealed())
	}
}

// What is in memory holds the entry under way, which may never be committed. Nobody is told of it, and nobody waits in silence.
func TestFull_TellsEveryQuestionWhyItHasNoAnswer(t *testing.T) {
	b := newBench(t, -1)
	l := b.next("sender", command.LaneQuery, &command.Get{Task: "x"}, &command.Get{Task: "x", Linear: true}, &command.List{}, &command.Explain{Task: "x"},
		&command.Await{Task: "x"}, &command.HandOver{Node: "b"}, &command.Info{}, &command.Info{Digest: true})
	b.deliver(l)
	b.own.refuseGathered(map[projection.SenderLane]uint64{})
	if len(l.got) != 1 || len(l.got[0]) != len(l.batch.Commands) {
		t.Fatalf("told %+v", l.got)
	}
	for i, want := range []command.AnswerCode{command.AnswerUnserved, command.AnswerUnserved, command.AnswerUnserved, command.AnswerUnserved, command.AnswerStoreFull, command.AnswerState, command.AnswerOK, command.AnswerOK} {
		a := l.got[0][i]
		if a.Code != want || want != command.AnswerStoreFull && want != command.AnswerOK && !strings.Contains(a.Text, command.StoreFull) {
			t.Errorf("%T is told %+v, want code %d and why", l.batch.Commands[i], a, want)
		}
	}
	if s, err := command.ReadTold[command.ShardReport](l.got[0][7].Data); err != nil || !strings.Contains(s.Problem, command.StoreFull) {
		t.Errorf("who wants to compare the state is told %+v, %v", s, err)
	}
	b.post(l)
	b.own.refuseGathered(map[projection.SenderLane]uint64{})
	if len(l.got) != 1 || b.own.inbox.size() != 1 {
		t.Errorf("a letter: told %+v, %d batches wait; want nothing and one", l.got, b.own.inbox.size())
	}
}

// A full store heals, so an outcome is waited for: it is asked for once a second.
func TestFull_WaitGoesOn(t *testing.T) {
	for _, run := range []uint32{0, 1} {
		synctest.Test(t, func(t *testing.T) {
			w := newWaiters(t)
			f := w.future(lifeOne*events.Ref(run), run)
			got := make(chan error, 1)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			swept := make(chan error, 1)
			go func() { swept <- w.sweep(ctx) }()
			go func() {
				_, err := f.Wait(t.Context())
				got <- err
			}()
			synctest.Wait()
			w.wantAsked("at first", 1, command.Answer{Code: command.AnswerStoreFull})
			for range 70 {
				time.Sleep(2 * sweepEvery)
				synctest.Wait() // the sweep of this moment
				if len(w.questions(command.Answer{Code: command.AnswerStoreFull})) == 0 {
					t.Fatal("nobody asks again")
				}
			}
			time.Sleep(2 * sweepEvery)
			synctest.Wait()
			w.wantAsked("when there is room", 1, outcomeAnswer(outcome.Outcome{Task: "a", Life: lifeOne, Run: 1, Status: projection.Success}))
			if err := <-got; err != nil {
				t.Errorf("run %d: %v", run, err)
			}
			cancel()
			<-swept
		})
	}
}

func TestRouter_RefusesWhatComesBehindABatchThatWaitsForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWays(t, true)
		submit := func() (chan result, error) {
			got := make(chan result, 2)
			return got, w.send(wayShard, command.LaneSubmit, submitOf(Policy{}), callback(func(a command.Answer, err error) { got <- result{a, err} }))
		}
		refused := func(when string, err error) {
			t.Helper()
			var overload *OverloadError
			if !errors.As(err, &overload) || overload.Cause != command.StoreFull || overload.RetryAfter != time.Second {
				t.Errorf("%s: %v", when, err)
			}
		}
		first, _ := submit()
		held := w.want("at once", 1, 0)
		behind, _ := submit()
		w.answer(held, false, command.Answer{Code: command.AnswerStoreFull, Text: command.StoreFull, Number: 1000})
		refused("a task that waited", (<-behind).err)
		_, err := submit()
		refused("a task that comes", err)
		refused("what creates nothing", w.send(wayShard, command.LaneSubmit, &command.Operate{Task: "x", Do: command.DoCancel}, nil))
		w.wantSilence(first)
		w.answer(held, true, command.Answer{Run: 1})
		w.wantResult(first, 1, nil)
		if _, err := submit(); err != nil {
			t.Errorf("when there is room: %v", err)
		}
	})
}

func TestRouter_TellsWhoWaitsThatALetterIsTooLargeForTheStore(t *testing.T) {
	const why = "larger than the store takes, and the message bus is away"
	tooLarge := fmt.Errorf("%w: %w", store.ErrRefused, store.ErrTooLarge)
	refused := func(t *testing.T, r result) {
		t.Helper()
		var overload *OverloadError
		if !errors.As(r.err, &overload) || !strings.Contains(overload.Cause, why) {
			t.Errorf("told %+v", r)
		}
	}
	t.Run("no copy was sent", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWays(t, false)
			w.store.err = tooLarge
			got := w.ask("a")
			w.want("refused", 0, 0)
			refused(t, <-got)
			w.store.err = nil
			got = w.ask("b")
			w.answer(w.want("a smaller one", 0, 1), true, command.Answer{Run: 1})
			w.wantResult(got, 1, nil)
		})
	})
	t.Run("a copy may have arrived", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWays(t, true)
			first := w.ask("a")
			batch := w.want("at once", 1, 0)
			behind := w.ask("b")
			w.store.err = tooLarge
			w.busChanged(false)
			w.want("nothing is posted", 0, 0)
			refused(t, <-behind)
			w.wantSilence(first)
			w.busChanged(true)
			w.answer(batch, true, command.Answer{Run: 1})
			w.wantResult(first, 1, nil)
		})
	})
}
