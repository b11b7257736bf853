package engine

import (
	"strings"
	"testing"

	"taskledger/engine/internal/explanation"
	"taskledger/task"
)

// Between two attempts in a row a task is ready for a moment although slots are free: it is not said to lack one.
func TestExplain_SaysThatASlotIsFreeWhileATaskIsPickedUp(t *testing.T) {
	p := newPost(t)
	members := present(2, selfID, farID)
	far := members.Nodes[farID]
	far.Slots, far.Behaviors = 1, []string{workBehavior}
	members.Nodes[farID] = far
	p.view.Store(&members)
	explain := func(offered bool) explanation.Explanation {
		return ownerHost{p.member}.Ready(workBehavior, func() bool { return offered })
	}
	if e := explain(false); e.Why != task.WhyWaiting || !strings.HasSuffix(e.Text, "on "+farID) {
		t.Errorf("explained as %+v, want that it waits for a slot there", e)
	}
	if e := explain(true); e.Why != task.WhyWaiting || !strings.Contains(e.Text, "a slot is free") {
		t.Errorf("explained as %+v, want that a slot is free", e)
	}
}
