package fault

import (
	"context"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"taskledger/integration/robustness/cluster"
	"taskledger/integration/robustness/history"
	"taskledger/integration/robustness/traffic"
)

func TestRound_DisturbsEachClientOnce(t *testing.T) {
	r := busy()
	r.Random = rand.New(rand.NewPCG(1, 0))
	r.Clients = []*cluster.Client{{}, {}}
	claimed := make(chan *cluster.Client, 2)
	f := &Kind{Name: "fake", scope: oneClient, inflict: func(_ context.Context, _ *cluster.Cluster, d disturbance) (string, string, error) {
		claimed <- d.client
		return "", "proof", nil
	}}
	makeRound(t.Context(), r, 1, []*Kind{f, f})
	if a, b := <-claimed, <-claimed; a == b || a == nil || b == nil || r.Clients[0].Claimed || r.Clients[1].Claimed {
		t.Errorf("claimed were %p and %p, and %t, %t still are", a, b, r.Clients[0].Claimed, r.Clients[1].Claimed)
	}
}

// clientOf starts a client on an etcd of its own, where no node serves: its calls wait until they are too late.
func clientOf(t *testing.T) (*cluster.Cluster, *cluster.Client) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	dir := t.TempDir()
	r := &cluster.Cluster{Servers: &cluster.Servers{Dir: dir, Data: dir, Begin: history.Now()}, Operations: traffic.NewOperations(), Executions: traffic.NewExecutions()}
	t.Cleanup(func() {
		for _, c := range r.Clients {
			if err := c.Stop(); err != nil {
				t.Error(err)
			}
		}
		if err := r.Servers.Stop(); err != nil {
			t.Error(err)
		}
		for _, d := range r.Damage {
			t.Errorf("%s: %s", d.Invariant, d.Text)
		}
	})
	if err := cluster.StartServers(ctx, r.Servers, 1, 0, cluster.NATSAbsent); err != nil {
		t.Fatal(err)
	}
	if err := r.NewClient(0); err != nil {
		t.Fatal(err)
	}
	if err := r.StartClient(ctx, r.Clients[0]); err != nil {
		t.Fatal(err)
	}
	return r, r.Clients[0]
}

func TestFault_ClientKillProvesWhatWasUnderWay(t *testing.T) {
	t.Parallel()
	r, c := clientOf(t)
	begun := false
	killed := c.Process
	target, proof, err := killClient(t.Context(), r, disturbance{client: c, begins: func() { begun = true }})
	if err != nil || !begun || target != "client1.1" || !strings.Contains(proof, "calls and") {
		t.Errorf("%s proves %q, %v", target, proof, err)
	}
	if c.Process == killed || c.Source != "client1.2" || strings.Join(r.Killed, " ") != "client1.1" {
		t.Errorf("%s has taken its place, killed are %v", c.Source, r.Killed)
	}
	unknown := 0
	all := r.Operations.All()
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
	t.Parallel()
	r, c := clientOf(t)
	_, proof, err := pauseClient(t.Context(), r, disturbance{client: c, duration: 200 * time.Millisecond})
	if err != nil || !strings.Contains(proof, "stood still") {
		t.Errorf("it proves %q, %v", proof, err)
	}
	no := false
	if _, err := c.Process.Order(t.Context(), cluster.Order{Submit: &no}); err != nil || c.Calls.UnderWay() != 0 {
		t.Errorf("after the pause %d calls are under way, %v", c.Calls.UnderWay(), err)
	}
	if err := c.Ask(t.Context(), traffic.Request{Verb: history.Submit, Task: "asked"}); err != nil {
		t.Error(err)
	}
	all := r.Operations.All()
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
		for i := range Kinds {
			alone := Kinds[i].Name == history.QuietKind
			if f.clashes(&Kinds[i]) != alone || Kinds[i].clashes(f) != alone {
				t.Errorf("%s clashes with %s: want %t", name, Kinds[i].Name, alone)
			}
		}
	}
}
