package world

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"taskledger/store"
)

// heard collects the subjects of messages.
type heard struct {
	mu  sync.Mutex
	all []string
}

func (h *heard) hear(m store.Message) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if m.NoResponders {
		m.Subject += " nobody"
	}
	h.all = append(h.all, m.Subject)
}

func (h *heard) take() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := h.all
	h.all = nil
	slices.Sort(all)
	return all
}

func TestBus_CarriesAsSubjectsSay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBus(newDice(1))
		from, to := b.port(t.Context()), b.port(t.Context())
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		var one, tail, queue, replies heard
		for _, s := range []struct {
			port    *port
			subject string
			queue   string
			to      *heard
		}{{to, "shard.1", "", &one}, {to, "done.>", "", &tail}, {to, "plan.*", "q", &queue}, {from, "plan.*", "q", &queue}, {from, "node.me.*.*.*", "", &replies}} {
			if err := s.port.Subscribe(ctx, s.subject, s.queue, s.to.hear); err != nil {
				t.Fatal(err)
			}
		}
		for _, subject := range []string{"shard.1", "shard.2", "done.1.2", "done", "plan.a", "plan.a.b"} {
			if err := from.Publish(subject, "node.me.1.2.3", nil); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Second)
		for _, want := range []struct {
			got  []string
			want []string
		}{{one.take(), []string{"shard.1"}}, {tail.take(), []string{"done.1.2"}}, {queue.take(), []string{"plan.a"}},
			{replies.take(), []string{"node.me.1.2.3 nobody", "node.me.1.2.3 nobody", "node.me.1.2.3 nobody"}}} {
			if !slices.Equal(want.got, want.want) {
				t.Errorf("heard %q, want %q", want.got, want.want)
			}
		}
		if from.mail() != "me" {
			t.Errorf("mail of %q, want that of me", from.mail())
		}
		stop()
		synctest.Wait()
		if err := from.Publish("shard.1", "", nil); err != nil {
			t.Fatal(err)
		}
		b.wait()
		if got := one.take(); got != nil {
			t.Errorf("heard %q after the end", got)
		}
	})
}

func TestBus_TellsWhenItIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBus(newDice(1))
		p, other := b.port(t.Context()), b.port(t.Context())
		var told []bool
		var got heard
		if err := p.Notify(t.Context(), func(up bool) { told = append(told, up) }); err != nil {
			t.Fatal(err)
		}
		if err := p.Subscribe(t.Context(), "load", "", got.hear); err != nil {
			t.Fatal(err)
		}
		var answers heard
		if err := other.Subscribe(t.Context(), "node.other.*.*.*", "", answers.hear); err != nil {
			t.Fatal(err)
		}
		p.hush(true)
		if err := other.Publish("load", "", nil); err != nil {
			t.Fatal(err)
		}
		b.wait()
		p.hush(false)
		p.disconnect(true)
		if err := p.Publish("load", "", nil); err == nil {
			t.Error("published without a connection")
		}
		if err := other.Publish("load", "node.other.1.2.3", nil); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		p.disconnect(false)
		if heard, want := answers.take(), []string{"node.other.1.2.3 nobody"}; !slices.Equal(heard, want) {
			t.Errorf("who asked one without a connection heard %q, want %q", heard, want)
		}
		if want := []bool{true, true, false, true}; !slices.Equal(told, want) {
			t.Errorf("told %v, want %v", told, want)
		}
		if heard := got.take(); heard != nil || p.hits.count(muffled) != 3 {
			t.Errorf("heard %q and lost %d, want nothing and 3", heard, p.hits.count(muffled))
		}
	})
}
