package command_test

import (
	"fmt"
	"testing"

	"taskledger/engine/internal/command"
)

// The numbers are on the wire: none changes, and each has its command.
func TestNew_EveryNumberHasItsCommand(t *testing.T) {
	want := []string{1: "Submit", "Merge", "Complete", "Progress", "Operate", "Pause", "Offer", "Reconcile", "HandOver", "Get", "Await", "List",
		"Info", "Explain", "Plan", "Barrier"}
	for op := range uint64(len(want)) {
		c := command.New(op)
		if op == 0 {
			if c != nil {
				t.Errorf("number 0 is %T", c)
			}
			continue
		}
		if name := fmt.Sprintf("%T", c); name != "*command."+want[op] || c.Op() != op {
			t.Errorf("number %d is %s, want %s", op, name, want[op])
		}
	}
	if c := command.New(uint64(len(want))); c != nil {
		t.Errorf("number %d is %T, want none", len(want), c)
	}
}
