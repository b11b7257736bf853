package main

import (
	"context"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"taskledger/integration/robustness/clock"
	"taskledger/integration/robustness/history"
	"taskledger/integration/robustness/record"
	"taskledger/integration/robustness/role"
	"taskledger/integration/robustness/traffic"
)

func TestRound_DisturbsEachClientOnce(t *testing.T) {
	r := busy()
	r.random = rand.New(rand.NewPCG(1, 0))
	r.clients = []*client{{}, {}}
	claimed := make(chan *client, 2)
	f := &fault{name: "fake", scope: oneClient, inflict: func(_ context.Context, _ *run, d disturbance) (string, string, error) {
		claimed <- d.client
		return "", "proof", nil
	}}
	r.round(t.Context(), 1, []*fault{f, f})
	if a, b := <-claimed, <-claimed; a == b || a == nil || b == nil || r.clients[0].claimed || r.clients[1].claimed {
		t.Errorf("claimed were %p and %p, and %t, %t still are", a, b, r.clients[0].claimed, r.clients[1].claimed)
	}
}

// clientOf starts a client on an etcd of its own, where no node serves: its calls wait until they are too late.
func clientOf(t *testing.T) (*run, *client) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*moment)
	defer cancel()
	dir := t.TempDir()
	r := &run{cluster: &cluster{dir: dir, data: dir, begin: clock.Now()}, done: record.NewOperations(), oracle: record.NewExecutions()}
	t.Cleanup(func() {
		for _, c := range r.clients {
			if err := c.stop(); err != nil {
				t.Error(err)
			}
		}
		if err := r.cluster.stop(); err != nil {
			t.Error(err)
		}
		for _, d := range r.damage {
			t.Errorf("%s: %s", d.Invariant, d.Text)
		}
	})
	if err := startCluster(ctx, r.cluster, 1, 0, natsAbsent); err != nil {
		t.Fatal(err)
	}
	if err := r.newClient(0); err != nil {
		t.Fatal(err)
	}
	if err := r.startClient(ctx, r.clients[0]); err != nil {
		t.Fatal(err)
	}
	return r, r.clients[0]
}

func TestFault_ClientKillProvesWhatWasUnderWay(t *testing.T) {
	r, c := clientOf(t)
	begun := false
	killed := c.process
	target, proof, err := killClient(t.Context(), r, disturbance{client: c, begins: func() { begun = true }})
	if err != nil || !begun || target != "client1.1" || !strings.Contains(proof, "calls and") {
		t.Errorf("%s proves %q, %v", target, proof, err)
	}
	if c.process == killed || c.Source != "client1.2" || strings.Join(r.killed, " ") != "client1.1" {
		t.Errorf("%s has taken its place, killed are %v", c.Source, r.killed)
	}
	unknown := 0
	all := r.done.All()
	for _, op := range all {
		if op.Answer == history.Unknown && op.Error == "" { // nothing was told
			unknown++
		}
	}
	if unknown == 0 {
		t.Errorf("of %d operations none is unknown because of the kill", len(all))
	}
}

func TestFault_ClientPauseProvesThatItStoodStill(t *testing.T) {
	r, c := clientOf(t)
	_, proof, err := pauseClient(t.Context(), r, disturbance{client: c, duration: 200 * time.Millisecond})
	if err != nil || !strings.Contains(proof, "stood still") {
		t.Errorf("it proves %q, %v", proof, err)
	}
	no := false
	if _, err := c.process.Order(t.Context(), role.Order{Submit: &no}); err != nil || c.calls.UnderWay() != 0 {
		t.Errorf("after the pause %d calls are under way, %v", c.calls.UnderWay(), err)
	}
	if err := c.ask(t.Context(), traffic.Request{Verb: history.Submit, Task: "asked"}); err != nil {
		t.Error(err)
	}
	all := r.done.All()
	asked := all[len(all)-1]
	if asked.Task != "asked" || asked.Verb != history.Submit || asked.Answer == history.OK {
		t.Errorf("it was ordered to submit, and did %+v", asked)
	}
}

// Faults of clients go with every other one but that nobody asks.
func TestPlan_PairsClientsWithEverything(t *testing.T) {
	for _, name := range []string{"client-kill", "client-pause"} {
		f, known := faultNamed(name)
		if !known || f.scope != oneClient {
			t.Fatalf("%s is no fault of a client", name)
		}
		for i := range faults {
			alone := faults[i].name == history.QuietKind
			if f.clashes(&faults[i]) != alone || faults[i].clashes(f) != alone {
				t.Errorf("%s clashes with %s: want %t", name, faults[i].name, alone)
			}
		}
	}
}
