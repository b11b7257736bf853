package engine

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"taskledger/engine/internal/shard"
	"taskledger/events"
	"taskledger/internal/testkit"
	"taskledger/store"
)

func TestLog_IsNotWrittenUnderALock(t *testing.T) {
	p := newPost(t)
	var tasks []owned
	for i := range maxLoadBytes/(backlogRowBytes+events.MaxBehaviorBytes) + 1 {
		tasks = append(tasks, owned{behavior: fmt.Sprintf("%0*d", events.MaxBehaviorBytes, i)})
	}
	p.owning(0, tasks...)
	log := &testkit.CallingLog{Do: func() { p.load.compare() }}
	p.member.log = slog.New(log)
	testkit.WantReturn(t, "the log of load", func() { p.load.message() })
	if n := log.Records(); n != 1 {
		t.Errorf("%d records, want 1", n)
	}
}

func TestLoad_ReadsTheClockBeforeItLocks(t *testing.T) {
	p := newPost(t)
	p.node.cfg.Now = func() time.Time {
		p.load.readyAt(0, "", time.Time{})
		return time.Now()
	}
	testkit.WantReturn(t, "a message", func() { p.load.message() })
	testkit.WantReturn(t, "a comparison", func() { p.load.compare() })
}

// The clock is the caller's, and may ask the engine in its turn.
func TestNow_IsCalledWithoutALock(t *testing.T) {
	p := newPost(t)
	p.view.Store(&store.Membership{Revision: 1, Nodes: map[string]store.NodeInfo{"n-1": {Name: "post", Owner: true}, "n-2": {Name: "unheard"}}})
	p.node.joined = time.Now()
	in := shard.NewInbox()
	p.sender.ServeHere(0, in)
	calls := 0
	look := func() time.Time {
		calls++
		in.Take(&shard.Mail{})
		p.place.served()
		p.offers.Unanswered()
		p.load.readyAt(0, "", time.Time{})
		return time.Now()
	}
	p.node.cfg.Now = look
	for _, c := range []struct {
		what string
		do   func()
	}{
		{"placement", func() { p.place.step(t.Context(), time.Now()) }},
		{"a message to the others", func() { p.load.message() }},
	} {
		before := calls
		testkit.WantReturn(t, c.what, c.do)
		if t.Failed() {
			return // a lock may be held for ever
		}
		if calls == before {
			t.Errorf("%s reads no clock", c.what)
		}
	}
}
