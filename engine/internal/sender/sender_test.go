package sender_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/commands"
	"taskledger/engine/internal/sender"
	"taskledger/events"
	"taskledger/store"
	"taskledger/task"
)

// wayBus records what is published; nobody answers but the test.
type wayBus struct {
	store.Bus
	mu   sync.Mutex
	sent []store.Message
	err  error
}

func (b *wayBus) Publish(subject, reply string, data []byte) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err != nil {
		return b.err
	}
	b.sent = append(b.sent, store.Message{Subject: subject, Reply: reply, Data: data})
	return nil
}

// wayStore records what is posted.
type wayStore struct {
	store.Mailbox
	takes   time.Duration
	err     error
	answers chan []byte
	mu      sync.Mutex
	posted  []store.MailboxBatch
}

func (s *wayStore) Post(_ context.Context, shard int, sender string, lane uint8, batch []byte) error {
	time.Sleep(s.takes)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return s.err
	}
	s.posted = append(s.posted, store.MailboxBatch{Shard: shard, Sender: sender, Lane: lane, Batch: batch})
	return nil
}

// Answers implements store.Mailbox.
func (s *wayStore) Answers(ctx context.Context, _ string) iter.Seq2[store.MailboxAnswer, error] {
	return func(yield func(store.MailboxAnswer, error) bool) {
		for {
			select {
			case <-ctx.Done():
				return
			case answer := <-s.answers:
				if !yield(store.MailboxAnswer{Answer: answer}, nil) {
					return
				}
			}
		}
	}
}

// delivered is a batch that was put into an inbox.
type delivered struct {
	*command.Batch
	reply sender.ReplyFunc
}

// inbox records what reaches the owner of a shard in this process.
type inbox struct {
	lanes   *sender.Here
	mu      sync.Mutex
	batches []delivered
}

// first returns the first batch that has come.
func (i *inbox) first() delivered {
	synctest.Wait()
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.batches[0]
}

// Put implements sender.Inbox.
func (i *inbox) Put(b *command.Batch, reply sender.ReplyFunc) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.batches = append(i.batches, delivered{b, reply})
}

// From implements sender.Inbox.
func (i *inbox) From(lanes *sender.Here) { i.lanes = lanes }

// Wake implements sender.Inbox: the owner takes what waits by itself.
func (i *inbox) Wake() {
	for _, lane := range sender.LanesHere {
		if b, reply := i.lanes.Depart(i, lane, i.lanes.Now()); b != nil {
			i.Put(b, reply)
		}
	}
}

// ways is a sender in a bubble of time, between a bus and a store that only record.
type ways struct {
	*testing.T
	*sender.Sender
	bus    *wayBus
	store  *wayStore
	clock  time.Duration // ahead of the time
	cancel context.CancelFunc
	ended  chan struct{}
}

const wayShard = 2

func newWays(t *testing.T, connected bool) *ways {
	w := &ways{T: t, bus: &wayBus{}, store: &wayStore{answers: make(chan []byte)}, ended: make(chan struct{})}
	w.Sender = sender.New(sender.Config{
		ID:        "c-1",
		Principal: "ada",
		Shards:    4,
		Bus:       w.bus,
		Mailbox:   w.store,
		Now:       func() time.Time { return time.Now().Add(w.clock) },
		Log:       slog.New(slog.DiscardHandler),
	})
	if connected {
		w.BusChanged(true)
	}
	ctx, cancel := context.WithCancel(t.Context())
	w.cancel = cancel
	go func() {
		defer close(w.ended)
		_ = w.Sender.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-w.ended
	})
	return w
}

// result is the reply to a command.
type result struct {
	command.Answer
	err error
}

// submit is a submit with n bytes of parameters.
func submit(n int) *command.Submit {
	policy, err := events.Policy{}.Complete()
	if err != nil {
		panic(err)
	}
	return &command.Submit{Task: "x", Behavior: "b", Policy: policy, Params: events.JSON(bytes.Repeat([]byte("1"), n-1))}
}

// into is a call of a command whose result arrives on a channel.
func into(got chan result, c command.Command) sender.Call {
	return sender.Call{Command: c, Waiter: sender.WaiterFunc(func(a command.Answer, err error) { got <- result{a, err} })}
}

// ask sends a command; what comes of it arrives on the channel.
func (w *ways) ask(name string) chan result {
	w.Helper()
	got := make(chan result, 2)
	if err := w.Send(wayShard, command.LaneSubmit, into(got, &command.Get{Task: events.TaskID(name)})); err != nil {
		w.Fatalf("%s was refused: %v", name, err)
	}
	return got
}

// taken returns the batches that went each way since the last call.
func (w *ways) taken() (bus, store []*command.Batch) {
	w.Helper()
	synctest.Wait()
	w.bus.mu.Lock()
	defer w.bus.mu.Unlock()
	w.store.mu.Lock()
	defer w.store.mu.Unlock()
	for _, m := range w.bus.sent {
		bus = append(bus, w.read(m.Data))
		if want := fmt.Sprintf("node.c-1.%d.%d.%d", wayShard, command.LaneSubmit, bus[len(bus)-1].Number); m.Subject != sender.Subject(wayShard) || m.Reply != want {
			w.Errorf("sent on %s with reply %s, want %s", m.Subject, m.Reply, want)
		}
	}
	for _, l := range w.store.posted {
		store = append(store, w.read(l.Batch))
		if l.Shard != wayShard || l.Sender != "c-1" || l.Lane != command.LaneSubmit {
			w.Errorf("posted as %+v", l)
		}
	}
	w.bus.sent, w.store.posted = nil, nil
	return bus, store
}

func (w *ways) read(data []byte) *command.Batch {
	w.Helper()
	b, err := commands.Table.DecodeBatch(data)
	if err != nil {
		w.Fatal(err)
	}
	return b
}

// want checks how many batches went each way, and returns the last.
func (w *ways) want(when string, bus, store int) *command.Batch {
	w.Helper()
	b, s := w.taken()
	if len(b) != bus || len(s) != store {
		w.Fatalf("%s: %d batches over the bus, %d through the store; want %d, %d", when, len(b), len(s), bus, store)
	}
	if all := append(b, s...); len(all) > 0 {
		return all[len(all)-1]
	}
	return nil
}

// reply answers a batch over the bus; nil acknowledges it.
func (w *ways) reply(b *command.Batch, answers []command.Answer) {
	w.OnMessage(store.Message{Data: command.EncodeAnswerMessage(wayShard, b, answers, true)})
	synctest.Wait()
}

func (w *ways) wantResult(c chan result, run uint32, err error) {
	w.Helper()
	synctest.Wait()
	select {
	case r := <-c:
		if r.Run != run || !errors.Is(r.err, err) {
			w.Errorf("told run %d, %v; want %d, %v", r.Run, r.err, run, err)
		}
	default:
		w.Error("told nothing")
	}
}

func (w *ways) wantSilence(c chan result) {
	w.Helper()
	synctest.Wait()
	select {
	case r := <-c:
		w.Errorf("told %+v", r)
	default:
	}
}

// oneBatch checks that batches are copies of one another.
func (w *ways) same(a, b *command.Batch) {
	w.Helper()
	if a.Number != b.Number || !bytes.Equal(a.Encode(), b.Encode()) {
		w.Errorf("batch %d was sent again as another, %d", a.Number, b.Number)
	}
}

func TestSender_OneBatchIsUnderWayInALaneAndTheRestFollowTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWays(t, true)
		one, two, three := w.ask("one"), w.ask("two"), w.ask("three")
		first := w.want("three commands", 1, 0)
		if first.Number != 1 || len(first.Commands) != 1 || first.Principal != "ada" {
			t.Errorf("first batch %+v", first)
		}
		w.reply(first, []command.Answer{{Run: 1}})
		w.wantResult(one, 1, nil)
		second := w.want("the first is answered", 1, 0)
		if second.Number != 2 || len(second.Commands) != 2 {
			t.Errorf("second batch %+v", second)
		}
		w.reply(second, []command.Answer{{Run: 2}, {Run: 3}})
		w.wantResult(two, 2, nil)
		w.wantResult(three, 3, nil)
		w.reply(second, []command.Answer{{Run: 9}, {Run: 9}})
		w.wantSilence(two)
		w.want("nothing waits", 0, 0)
	})
}

func TestSender_WithoutAnswerTheSameBatchTakesTheOtherWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWays(t, true)
		got := w.ask("one")
		first := w.want("at once", 1, 0)
		time.Sleep(sender.BusTimeout - time.Millisecond)
		w.want("before timeout is over", 0, 0)
		time.Sleep(sender.BusTimeout / 4)
		w.same(first, w.want("after 250 ms", 0, 1))
		time.Sleep(sender.ResendEvery - sender.BusTimeout)
		w.want("while the letter lies there", 0, 0)
		time.Sleep(sender.BusTimeout + sender.BusTimeout/4)
		w.same(first, w.want("two seconds later", 1, 0))
		w.reply(first, []command.Answer{{Run: 7}})
		w.wantResult(got, 7, nil)
		time.Sleep(time.Minute)
		w.want("after the answer", 0, 0)
	})
}

func TestSender_AcknowledgedBatchIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWays(t, true)
		w.ask("one")
		first := w.want("at once", 1, 0)
		w.reply(first, nil)
		time.Sleep(sender.ResendEvery - sender.BusTimeout)
		w.want("within two seconds", 0, 0)
		time.Sleep(sender.BusTimeout + sender.BusTimeout/4)
		w.same(first, w.want("after two seconds", 1, 0))
	})
}

func TestSender_WhenNobodyListensTheStoreIsNextAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWays(t, true)
		w.ask("one")
		w.bus.mu.Lock()
		reply := w.bus.sent[0].Reply
		w.bus.mu.Unlock()
		first := w.want("at once", 1, 0)
		w.OnMessage(store.Message{Subject: reply, NoResponders: true})
		w.same(first, w.want("nobody listens", 0, 1))
		for _, other := range []string{"node.c-1.2.0.9", "node.c-1.2.0", "node.c-1.9.0.1", "node.c-1.-1.0.1", "node.c-1.2.9.1", "node.c-1.x.0.1", ""} {
			w.OnMessage(store.Message{Subject: other, NoResponders: true})
		}
		w.want("news of other batches", 0, 0)
		time.Sleep(sender.ResendEvery - sender.BusTimeout)
		w.want("while the letter lies there", 0, 0)
	})
}

func TestSender_WithoutBusEverythingGoesThroughTheStore(t *testing.T) {
	for name, spoil := range map[string]func(w *ways){
		"away":  func(w *ways) { w.BusChanged(false) },
		"fails": func(w *ways) { w.bus.err = errors.New("no connection") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWays(t, true)
				spoil(w)
				got := w.ask("one")
				first := w.want("at once", 0, 1)
				w.store.answers <- command.EncodeAnswerMessage(wayShard, first, []command.Answer{{Run: 1}}, true)
				w.wantResult(got, 1, nil)
			})
		})
	}
}

// Every letter replaces the one before, and the answer to that is void: none is written while another is on its way.
func TestSender_BatchThatIsBeingPostedIsNotPostedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWays(t, false)
		w.store.takes = 3 * sender.BusTimeout
		w.ask("x")
		time.Sleep(w.store.takes + sender.ResendEvery - 2*sender.BusTimeout)
		w.want("after one letter", 0, 1)
		time.Sleep(w.store.takes + 3*sender.BusTimeout)
		w.want("after another, whose answer does not come either", 0, 1)
	})
}

func TestSender_OwnerInThisProcessIsReachedByACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWays(t, true)
		got := w.ask("one")
		first := w.want("at once", 1, 0)
		in := &inbox{}
		w.ServeHere(wayShard, in)
		d := in.first()
		w.same(first, d.Batch)
		time.Sleep(time.Minute)
		w.want("while the owner is here", 0, 0)
		d.reply(d.Batch, []command.Answer{{Run: 4}}, true)
		w.wantResult(got, 4, nil)
		w.ServeHere(wayShard, nil)
		w.ask("two")
		w.want("after the owner has left", 1, 0)
	})
}

func TestSender_AnswersThatFitNoBatchAreDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWays(t, true)
		got := w.ask("one")
		first := w.want("at once", 1, 0)
		for _, b := range []*command.Batch{{Number: 0}, {Number: 2}, {Number: 1, Lane: command.LaneWork}} {
			w.reply(b, []command.Answer{{}})
		}
		w.reply(first, []command.Answer{})
		w.reply(first, []command.Answer{{}, {}})
		w.OnMessage(store.Message{Data: []byte("garbled")})
		w.OnMessage(store.Message{Data: command.EncodeAnswerMessage(200, first, []command.Answer{{}}, true)})
		w.wantSilence(got)
		w.reply(first, []command.Answer{{Run: 1}})
		w.wantResult(got, 1, nil)
	})
}

func TestSender_AnswerThatDidNotFitIsAskedForAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWays(t, true)
		got := w.ask("one")
		w.reply(w.want("at once", 1, 0), []command.Answer{{Code: command.AnswerTryAgain}})
		second := w.want("again", 1, 0)
		if second.Number != 2 {
			t.Errorf("asked again under number %d, want a new one", second.Number)
		}
		w.wantSilence(got)
		w.reply(second, []command.Answer{{Run: 1}})
		w.wantResult(got, 1, nil)
	})
}

func TestSender_GivesUpAfterHalfAnHourWithOutcomeUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWays(t, true)
		one, two := w.ask("one"), w.ask("two")
		time.Sleep(sender.GiveUp - time.Second)
		w.wantSilence(one)
		b, s := w.taken()
		for _, again := range append(b, s...) {
			w.same(b[0], again)
		}
		if len(b) < 100 || len(s) < 100 {
			t.Errorf("%d times over the bus and %d through the store in half an hour", len(b), len(s))
		}
		time.Sleep(5 * time.Second)
		w.wantResult(one, 0, task.ErrUnknown)
		b, s = w.taken()
		if all := append(b, s...); len(all) == 0 || all[len(all)-1].Number != 2 {
			t.Error("the next batch was not sent")
		}
		w.wantSilence(two)
	})
}

func TestSender_EndFailsWhoeverWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWays(t, true)
		sent, waiting := w.ask("sent"), w.ask("waiting")
		w.cancel()
		<-w.ended
		w.wantResult(sent, 0, task.ErrUnknown)
		w.wantResult(waiting, 0, task.ErrClosed)
		if _, err := w.Ask(t.Context(), wayShard, command.LaneSubmit, &command.Info{}); !errors.Is(err, task.ErrClosed) {
			t.Errorf("asked after the end: %v", err)
		}
	})
}

func TestAsk_ContextThatEndsTellsWhetherAnythingWasSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWays(t, true)
		for _, want := range []error{task.ErrUnknown, store.ErrUnavailable} { // the first is sent, the second waits behind it
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			_, err := w.Ask(ctx, wayShard, command.LaneSubmit, &command.Get{Task: "a"})
			if !errors.Is(err, want) || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%v, want %v", err, want)
			}
			cancel()
		}
		b, _ := w.taken()
		w.reply(b[0], []command.Answer{{}})
		w.want("what was withdrawn is not sent", 0, 0)
	})
}

func TestSender_SubmitsBeyondTheLimitAreRefusedAndOutcomesAreNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWays(t, true)
		for range sender.MaxQueued + 1 { // one is under way
			if w.Send(wayShard, command.LaneSubmit, sender.Call{Command: &command.Info{}}) != nil {
				t.Fatal("refused below the limit")
			}
		}
		var overload *task.OverloadError
		if _, err := w.Ask(t.Context(), wayShard, command.LaneSubmit, &command.Info{}); !errors.As(err, &overload) || overload.RetryAfter <= 0 {
			t.Errorf("%v, want an OverloadError", err)
		}
		for range sender.MaxQueued + 2 {
			if w.Send(wayShard, command.LaneWork, sender.Call{Command: &command.Info{}}) != nil {
				t.Fatal("an outcome was refused")
			}
		}
	})
}

// What would wait longer than its caller does is refused when it comes, not given up when it is late.
func TestSender_SubmitsBehindALongWaitAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWays(t, true)
		submit := func() bool { return w.Send(wayShard, command.LaneSubmit, sender.Call{Command: &command.Info{}}) == nil }
		w.ask("first")
		first := w.want("first", 1, 0)
		for range command.MaxBatchCommands + sender.FewQueued + 1 {
			submit()
		}
		time.Sleep(2 * sender.MaxQueueTime)
		w.taken()
		w.reply(first, []command.Answer{{}})
		second := w.want("second", 1, 0)
		if submit() {
			t.Error("taken behind a long wait")
		}
		if w.Send(wayShard, command.LaneWork, sender.Call{Command: &command.Info{}}) != nil {
			t.Error("an outcome was refused")
		}
		w.reply(second, make([]command.Answer, len(second.Commands)))
		if !submit() {
			t.Error("refused although few wait")
		}
	})
}

// Nobody answers for ten seconds: the owner is replaced.
func TestSender_SubmitsWaitForTheNextOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWays(t, true)
		for i := range 10_000 {
			if err := w.Send(wayShard, command.LaneSubmit, sender.Call{Command: &command.Info{}}); err != nil {
				t.Fatalf("submit %d: %v", i, err)
			}
			time.Sleep(time.Millisecond)
		}
	})
}

// A command that must be sent again finds its place taken when others have waited for long.
func TestSender_CommandToTryAgainBehindALongWaitIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWays(t, true)
		tried := w.ask("first")
		first := w.want("first", 1, 0)
		for range command.MaxBatchCommands + sender.FewQueued + 1 {
			w.Send(wayShard, command.LaneSubmit, sender.Call{Command: &command.Info{}})
		}
		time.Sleep(2 * sender.MaxQueueTime)
		w.reply(first, []command.Answer{{Code: command.AnswerTryAgain}})
		var overload *task.OverloadError
		if got := <-tried; !errors.As(got.err, &overload) {
			t.Errorf("%v, want an OverloadError", got.err)
		}
	})
}

func TestSender_BatchesAreBoundedInNumberAndSize(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWays(t, true)
		for range command.MaxBatchCommands + 2 {
			w.Send(wayShard, command.LaneSubmit, sender.Call{Command: &command.Info{}})
		}
		w.reply(w.want("first", 1, 0), make([]command.Answer, 1))
		second := w.want("second", 1, 0)
		if len(second.Commands) != command.MaxBatchCommands {
			t.Errorf("%d commands in a batch", len(second.Commands))
		}
		w.reply(second, make([]command.Answer, len(second.Commands)))
		third := w.want("third", 1, 0)
		for range 4 {
			w.Send(wayShard, command.LaneSubmit, sender.Call{Command: submit(command.MaxBatchBytes / 2)})
		}
		w.reply(third, make([]command.Answer, len(third.Commands)))
		if fourth := w.want("large commands", 1, 0); len(fourth.Commands) != 2 {
			t.Errorf("%d commands of half the limit in a batch, want 2", len(fourth.Commands))
		}
	})
}

func TestSender_CommandToTryAgainWhileTheClientStopsEndsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWays(t, true)
		w.ask("a")
		first := w.want("at once", 1, 0)
		closing := sender.WaiterFunc(func(command.Answer, error) { w.Close() })
		if err := w.Send(wayShard, command.LaneSubmit, sender.Call{Command: &command.Get{Task: "b"}, Waiter: closing}); err != nil {
			t.Fatal(err)
		}
		again := w.ask("c")
		w.reply(first, []command.Answer{{Run: 1}})
		w.reply(w.want("after the answer", 1, 0), []command.Answer{{Run: 1}, {Code: command.AnswerTryAgain}})
		w.wantResult(again, 0, task.ErrClosed)
	})
}
