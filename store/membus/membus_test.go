package membus_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"

	"taskledger/store"
	"taskledger/store/membus"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world holds the bus of one test, in a bubble: when all goroutines wait, what is to come has come.
type world struct {
	*testing.T
	*membus.Bus
}

func bubble(t *testing.T, test func(w *world)) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{t, membus.New()}
		defer func() {
			if err := w.Close(); err != nil {
				t.Error(err)
			}
		}()
		test(w)
	})
}

// hear returns what comes on a subject.
func (w *world) hear(ctx context.Context, subject, queue string) *[]store.Message {
	w.Helper()
	came := new([]store.Message)
	if err := w.Subscribe(ctx, subject, queue, func(m store.Message) { *came = append(*came, m) }); err != nil {
		w.Fatal(err)
	}
	return came
}

func (w *world) publish(subject, reply, data string) {
	w.Helper()
	if err := w.Publish(subject, reply, []byte(data)); err != nil {
		w.Fatal(err)
	}
	synctest.Wait()
}

func TestPublish_ReachesEverybodyWhoListens(t *testing.T) {
	bubble(t, func(w *world) {
		one, two, other := w.hear(w.Context(), "load", ""), w.hear(w.Context(), "load", ""), w.hear(w.Context(), "other", "")
		w.publish("load", "node.a.1", "busy")
		for _, came := range []*[]store.Message{one, two} {
			want := []store.Message{{Subject: "load", Reply: "node.a.1", Data: []byte("busy")}}
			if !reflect.DeepEqual(*came, want) {
				w.Errorf("came %+v, want %+v", *came, want)
			}
		}
		if clear((*one)[0].Data); string((*two)[0].Data) != "busy" {
			w.Error("two handlers share the bytes of a message")
		}
		if len(*other) != 0 {
			w.Errorf("on another subject came %+v", *other)
		}
	})
}

func TestPublish_OfAQueueReachesOne(t *testing.T) {
	bubble(t, func(w *world) {
		one, two := w.hear(w.Context(), "plan.b", "plan"), w.hear(w.Context(), "plan.b", "plan")
		all := w.hear(w.Context(), "plan.b", "")
		for range 100 {
			w.publish("plan.b", "", "")
		}
		if len(*one)+len(*two) != 100 || len(*one) == 0 || len(*two) == 0 || len(*all) != 100 {
			w.Errorf("came %d, %d and %d, want 100 divided and 100", len(*one), len(*two), len(*all))
		}
	})
}

func TestSubscribe_WildcardsStandForTokens(t *testing.T) {
	bubble(t, func(w *world) {
		star, rest := w.hear(w.Context(), "node.*.answer", ""), w.hear(w.Context(), "node.>", "")
		for _, subject := range []string{"node", "node.a", "node.a.answer", "node.a.answer.more", "nodes.a.answer"} {
			w.publish(subject, "", "")
		}
		if len(*star) != 1 || len(*rest) != 3 {
			w.Errorf("came %+v and %+v", *star, *rest)
		}
	})
}

func TestPublish_WhereNobodyListensItsSenderIsTold(t *testing.T) {
	bubble(t, func(w *world) {
		answers := w.hear(w.Context(), "node.a.>", "")
		w.publish("shard.7", "node.a.1", "question")
		if len(*answers) != 1 || !(*answers)[0].NoResponders || (*answers)[0].Subject != "node.a.1" {
			w.Errorf("came %+v", *answers)
		}
	})
}

func TestSubscribe_EndsWithItsContext(t *testing.T) {
	bubble(t, func(w *world) {
		ctx, cancel := context.WithCancel(w.Context())
		came := w.hear(ctx, "load", "")
		w.publish("load", "", "")
		cancel()
		synctest.Wait()
		w.publish("load", "", "")
		if len(*came) != 1 {
			w.Errorf("%d messages came, want one", len(*came))
		}
	})
}

func TestNotify_TellsOfAConnectionUntilTheEnd(t *testing.T) {
	bubble(t, func(w *world) {
		var told []bool
		if err := w.Notify(w.Context(), func(up bool) { told = append(told, up) }); err != nil {
			w.Fatal(err)
		}
		if err := w.Close(); err != nil {
			w.Fatal(err)
		}
		if fmt.Sprint(told) != "[true false]" {
			w.Errorf("told %v", told)
		}
		if err := w.Publish("load", "", nil); !errors.Is(err, membus.ErrClosed) {
			w.Errorf("publish: %v, want %v", err, membus.ErrClosed)
		}
		if err := w.Subscribe(w.Context(), "load", "", nil); !errors.Is(err, membus.ErrClosed) {
			w.Errorf("subscribe: %v, want %v", err, membus.ErrClosed)
		}
	})
}

// The handler waits while more comes than the bus holds for it.
func TestNotify_TellsThatMessagesWereMissed(t *testing.T) {
	bubble(t, func(w *world) {
		told, came, wait := 0, 0, make(chan struct{})
		if err := w.Notify(w.Context(), func(bool) { told++ }); err != nil {
			w.Fatal(err)
		}
		err := w.Subscribe(w.Context(), "load", "", func(store.Message) {
			came++
			<-wait
		})
		if err != nil {
			w.Fatal(err)
		}
		for range 70 {
			if err := w.Publish("load", "", make([]byte, 1<<20)); err != nil {
				w.Fatal(err)
			}
		}
		close(wait)
		synctest.Wait()
		if came >= 70 || came < 64 || told != 2 {
			w.Errorf("%d of 70 messages came, and it was told %d times of the connection; want twice", came, told)
		}
	})
}

func TestBus_RefusesMalformedSubjects(t *testing.T) {
	bubble(t, func(w *world) {
		for _, subject := range []string{"", ".", "a.", ".a", "a b", "a.*", "a.>"} {
			if err := w.Publish(subject, "", nil); !errors.Is(err, membus.ErrSubject) {
				w.Errorf("publish on %q: %v", subject, err)
			}
		}
		for _, subject := range []string{"", "*", ">", "a.>.b", "a. "} {
			if err := w.Subscribe(w.Context(), subject, "", nil); !errors.Is(err, membus.ErrSubject) {
				w.Errorf("subscribe to %q: %v", subject, err)
			}
		}
	})
}
