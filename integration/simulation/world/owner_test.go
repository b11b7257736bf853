package world

import (
	"context"
	"testing"
	"time"

	"taskledger/task"
)

// An owner that has something to start while its session may be over sleeps, and then starts it.
func TestOwner_SleepsWhileItsSessionMayBeOver(t *testing.T) {
	w := newWorld(1)
	stop := w.beginClock()
	p, err := w.begin("node-0", true)
	if err != nil {
		t.Fatal(err)
	}
	<-p.node.Ready()
	f, err := p.client.Submit(t.Context(), p.behavior(once), []byte("{}"), task.SubmitOptions{NotBefore: p.now().Add(ttl * 7 / 10)})
	if err != nil {
		t.Fatal(err)
	}
	p.conn.change(func(f *faultSettings) { f.held++ })
	p.ahead.Store(1) // its looks at the clock are counted
	time.Sleep(ttl)
	p.ahead.Store(0)
	p.conn.change(func(f *faultSettings) { f.held-- })
	if looks := p.hits.count(misread); looks > 1000 {
		t.Errorf("it looked at the clock %d times while there was nothing to do", looks)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if _, err := f.Wait(ctx); err != nil {
		t.Errorf("the task that became due meanwhile: %v", err)
	}
	f.Close()
	p.leave()
	w.late.Wait()
	w.bus.wait()
	stop()
}
