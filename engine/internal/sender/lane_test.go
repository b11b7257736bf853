package sender_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/command/commandtest"
	"taskledger/engine/internal/sender"
	"taskledger/engine/internal/stores"
	"taskledger/item"
	"taskledger/store"
	"taskledger/task"
)

func TestSender_RefusesWhatIsTooLargeBeforeItIsQueued(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWays(t, true)
		for op := uint64(1); op < commandtest.Count(); op++ {
			for field, c := range commandtest.Oversized(op) {
				if w.Send(wayShard, command.LaneSubmit, sender.Call{Command: c}) == nil {
					t.Errorf("%s is sent", field)
				}
				answers := 0
				w.Later(wayShard, c, sender.WaiterFunc(func(_ command.Answer, err error) {
					if answers++; err == nil {
						t.Errorf("%s is sent later", field)
					}
				}))
				if answers != 1 {
					t.Errorf("%s: answered %d times", field, answers)
				}
			}
		}
		w.Flush(wayShard, command.LaneWork)
		w.want("nothing waits", 0, 0)
	})
}

func TestSender_ARepetitionAgesWhileItWaitsForItsBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWays(t, true)
		w.ask("a")
		first := w.want("at once", 1, 0)
		for _, age := range []time.Duration{0, time.Second} {
			u := stores.UpdateOf("s", &item.Update{Client: 1, Key: "k", Age: age, Adds: []item.Add{{Group: "g"}}})
			if err := w.Send(wayShard, command.LaneSubmit, sender.Call{Command: u}); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(10 * time.Minute)
		w.taken()
		w.reply(first, []command.Answer{{}})
		second := w.want("after ten minutes", 1, 0)
		if len(second.Commands) != 2 {
			t.Fatalf("%d commands", len(second.Commands))
		}
		for i, want := range []time.Duration{0, 10*time.Minute + time.Second} {
			if got := time.Duration(second.Commands[i].(*stores.Update).Age); got != want {
				t.Errorf("command %d is %s old, want %s", i, got, want)
			}
		}
	})
}

// The clock is the caller's, and may use the engine in its turn.
func TestSender_ReadsTheClockWithoutALock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reads := 0
		var s *sender.Sender
		s = sender.New(sender.Config{
			ID:     "c-1",
			Shards: 1,
			Bus:    &wayBus{},
			Now: func() time.Time {
				reads++
				for lane := range command.LaneOffer {
					s.Withdraw(0, lane, nil)
				}
				return time.Now()
			},
		})
		s.BusChanged(true)
		in := &inbox{}
		submits := func() { _ = s.Send(0, command.LaneSubmit, sender.Call{Command: submit(2)}) }
		answers := func(n uint64, recorded bool) {
			b := &command.Batch{Lane: command.LaneSubmit, Number: n}
			s.OnMessage(store.Message{Data: command.EncodeAnswerMessage(0, b, []command.Answer{{}}, recorded)})
		}
		for _, step := range []struct {
			what string
			do   func()
		}{
			{"a submit", submits},
			{"the next one", func() { submits(); answers(1, true) }},
			{"a batch of which there are two copies", func() { s.OwnerChanged(0); answers(2, false); answers(3, true); submits() }},
			{"an owner here", func() { s.ServeHere(0, in); answers(4, true); submits() }},
			{"the end of an owner", func() { s.ServeHere(0, nil) }},
		} {
			before := reads
			step.do()
			if reads == before {
				t.Errorf("%s reads no clock", step.what)
			}
		}
	})
}

// many asks for n submits at once.
func many(ctx context.Context, w *ways, n int) chan []sender.Reply {
	commands := make([]sender.Submission, n)
	for i := range commands {
		commands[i] = sender.Submission{Shard: wayShard, Command: submit(2)}
	}
	got := make(chan []sender.Reply, 1)
	go func() { got <- w.AskMany(ctx, commands) }()
	return got
}

func TestAskMany_TravelsInOneBatchAndEachHasItsAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWays(t, true)
		got := many(t.Context(), w, 3)
		b := w.want("at once", 1, 0)
		if len(b.Commands) != 3 {
			t.Fatalf("%d commands in the batch, want 3", len(b.Commands))
		}
		w.reply(b, []command.Answer{{Run: 1}, {Run: 2}, {Code: command.AnswerNotFound}})
		replies := <-got
		if replies[0].Answer.Run != 1 || replies[1].Answer.Run != 2 || replies[2].Answer.Code != command.AnswerNotFound {
			t.Errorf("replies %+v", replies)
		}
		if len(<-many(t.Context(), w, 0)) != 0 {
			t.Error("nothing asked has replies")
		}
	})
}

func TestAskMany_ContextThatEndsTellsOfEachWhetherItWasSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWays(t, true)
		for _, want := range []error{task.ErrUnknown, store.ErrUnavailable} { // the first leaves, the second waits behind it
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			for i, r := range <-many(ctx, w, 2) {
				if !errors.Is(r.Err, want) || !errors.Is(r.Err, context.DeadlineExceeded) {
					t.Errorf("reply %d: %v, want %v", i, r.Err, want)
				}
			}
			cancel()
		}
	})
}

func TestAskMany_EndOfTheSenderFailsEach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWays(t, true)
		sent, waits := many(t.Context(), w, 1), chan []sender.Reply(nil)
		w.want("at once", 1, 0)
		waits = many(t.Context(), w, 1)
		synctest.Wait()
		w.cancel()
		<-w.ended
		for want, got := range map[error]chan []sender.Reply{task.ErrUnknown: sent, task.ErrClosed: waits} {
			if r := <-got; !errors.Is(r[0].Err, want) {
				t.Errorf("%v, want %v", r[0].Err, want)
			}
		}
		if r := <-many(t.Context(), w, 1); !errors.Is(r[0].Err, task.ErrClosed) {
			t.Errorf("after the end: %v", r[0].Err)
		}
	})
}

// FuzzNoResponders tells a sender that nobody listens on any subject.
func FuzzNoResponders(f *testing.F) {
	f.Add("node.c-1.3.0.1")
	f.Add("node.c-1.3.3.1")
	f.Add("node.c-1.-1.9.1")
	f.Add("node.c-1.99999999999999999999.0.1")
	f.Fuzz(func(t *testing.T, subject string) {
		s := sender.New(sender.Config{ID: "c-1", Shards: 4, Now: time.Now, Log: slog.New(slog.DiscardHandler)})
		s.OnMessage(store.Message{Subject: subject, NoResponders: true})
		s.OnMessage(store.Message{Subject: subject, Data: []byte(subject)})
	})
}
