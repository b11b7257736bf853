package cluster

import (
	"context"
	"testing"
	"time"
)

// moment bounds what a process does at once on a busy machine.
const moment = 30 * time.Second

// A node that is replaced while an order stands is given it, too; what is withdrawn is forgotten.
func TestNode_KeepsStandingOrders(t *testing.T) {
	p, err := StartProcess(Role{Kind: roleNATS, Name: "nats"}, nil, t.TempDir(), func(Word) {})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), moment)
	defer cancel()
	if _, err := p.Await(ctx); err != nil {
		t.Fatal(err, p.Kill())
	}
	n := &Node{process: p}
	order := Order{Count: true}
	if err := n.Stand(t.Context(), &order); err != nil || len(n.stands()) != 1 {
		t.Errorf("%d orders stand, %v", len(n.stands()), err)
	}
	if err := p.Stop(moment); err != nil {
		t.Fatal(err)
	}
	if err := n.Stand(t.Context(), &Order{}); err != nil { // its next process will hear it
		t.Errorf("while it is replaced: %v", err)
	}
	if _, err := n.Withdraw(t.Context(), &order, order); err != nil || len(n.stands()) != 1 {
		t.Errorf("%d orders stand, %v", len(n.stands()), err)
	}
}
