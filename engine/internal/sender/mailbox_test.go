package sender_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/sender"
	"taskledger/store"
	"taskledger/task"
)

func TestSender_RefusesWhatComesBehindABatchThatWaitsForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWays(t, true)
		try := func() (chan result, error) {
			got := make(chan result, 2)
			return got, w.Send(wayShard, command.LaneSubmit, into(got, submit(2)))
		}
		refused := func(when string, err error) {
			t.Helper()
			var overload *task.OverloadError
			if !errors.As(err, &overload) || overload.Cause != command.StoreFull || overload.RetryAfter != time.Second {
				t.Errorf("%s: %v", when, err)
			}
		}
		first, _ := try()
		held := w.want("at once", 1, 0)
		behind, _ := try()
		w.answer(held, false, command.Answer{Code: command.AnswerStoreFull, Text: command.StoreFull, Number: 1000})
		refused("a task that waited", (<-behind).err)
		_, err := try()
		refused("a task that comes", err)
		refused("what creates nothing", w.Send(wayShard, command.LaneSubmit, sender.Call{Command: &command.Operate{Task: "x", Do: command.DoCancel}}))
		w.wantSilence(first)
		w.answer(held, true, command.Answer{Run: 1})
		w.wantResult(first, 1, nil)
		if _, err := try(); err != nil {
			t.Errorf("when there is room: %v", err)
		}
	})
}

func TestSender_TellsWhoWaitsThatALetterIsTooLargeForTheStore(t *testing.T) {
	const why = "larger than the store takes, and the message bus is away"
	tooLarge := fmt.Errorf("%w: %w", store.ErrRefused, store.ErrTooLarge)
	refused := func(t *testing.T, r result) {
		t.Helper()
		var overload *task.OverloadError
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
			w.BusChanged(false)
			w.want("nothing is posted", 0, 0)
			refused(t, <-behind)
			w.wantSilence(first)
			w.BusChanged(true)
			w.answer(batch, true, command.Answer{Run: 1})
			w.wantResult(first, 1, nil)
		})
	})
}
