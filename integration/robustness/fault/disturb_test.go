package fault

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"taskledger/integration/robustness/cluster"
	"taskledger/integration/robustness/history"
	"taskledger/integration/robustness/traffic"
)

// busy is a run with ten tasks in flight, in the first round.
func busy() *cluster.Cluster {
	r := &cluster.Cluster{Servers: &cluster.Servers{}, Operations: traffic.NewOperations(), Executions: traffic.NewExecutions()}
	for i := range 10 {
		r.Operations.Add(history.Operation{Verb: history.Submit, Task: string(rune('a' + i)), Answer: history.OK})
	}
	return r
}

// joined is a node in a session.
func joined(session string) *cluster.Node {
	n := &cluster.Node{}
	n.Joined(session)
	return n
}

func fake(proof string, err error) *Kind {
	return &Kind{Name: "fake", inflict: func(context.Context, *cluster.Cluster, disturbance) (string, string, error) {
		return "target", proof, err
	}}
}

// What a fault met and proved is in the record, where the checkers judge it.
func TestInflict_RecordsWhatItMet(t *testing.T) {
	for _, c := range []struct {
		name     string
		fault    *Kind
		inFlight int
		problem  string // "" = none
	}{
		{"it bit", fake("proof", nil), 10, ""},
		{"it did not bite", fake("", nil), 10, ""},
		{"it failed", fake("proof", errors.New("broken")), 10, "broken"},
		{"a node does not serve", fake("proof", cluster.ErrIdle), 10, ""}, // that is damage
		{"some were deleted or cancelled", fake("proof", nil), 8, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := busy()
			if c.inFlight == 8 {
				r.Operations.Add(history.Operation{Verb: history.Delete, Task: "a", Answer: history.OK})
				r.Operations.Add(history.Operation{Verb: history.Cancel, Task: "b", Answer: history.OK})
			}
			r.NoteFault(inflict(t.Context(), r, c.fault, disturbance{round: 3}))
			_, proof, _ := c.fault.inflict(t.Context(), r, disturbance{})
			if len(r.Faults) != 1 || r.Faults[0].Kind != "fake" || r.Faults[0].Round != 3 || r.Faults[0].InFlight != c.inFlight || r.Faults[0].Proof != proof {
				t.Errorf("recorded are %+v", r.Faults)
			}
			if problems := strings.Join(r.Problems, "; "); (problems == "") != (c.problem == "") || !strings.Contains(problems, c.problem) {
				t.Errorf("problems: %q, want %q", problems, c.problem)
			}
		})
	}
}

func TestPlan_PutsTogetherWhatGoesTogether(t *testing.T) {
	seen := map[string]bool{}
	for seed := range uint64(200) {
		p, err := NewPlan(rand.New(rand.NewPCG(seed, 0)), cluster.Settings{Members: 3})
		if err != nil {
			t.Fatal(err)
		}
		long := 0
		for _, round := range p {
			for _, f := range round {
				seen[f.Name] = true
				if f.long() {
					long++
				}
				if p.Needs().Has(cluster.NeedAbsent) && f.needs&(cluster.NeedNATS|cluster.NeedTight) != 0 {
					t.Errorf("seed %d: %s in a history without NATS", seed, f.Name)
				}
			}
			if len(round) == 2 && (round[0].clashes(round[1]) || round[0].scope == nothing && round[0] == round[1]) || len(round) > 2 {
				t.Errorf("seed %d: %s is in force with %s", seed, round[0].Name, round[1].Name)
			}
		}
		if long > 1 {
			t.Errorf("seed %d: %d faults take minutes", seed, long)
		}
	}
	for _, f := range Kinds {
		if !seen[f.Name] && f.Cannot(3) == "" {
			t.Errorf("%s is never drawn", f.Name)
		}
	}
}

func TestClaim_KillsANodeWithWork(t *testing.T) {
	for seed := range uint64(20) {
		r := busy()
		r.Random = rand.New(rand.NewPCG(seed, 0))
		for _, session := range []string{"idle1", "works", "idle2"} {
			r.Nodes = append(r.Nodes, joined(session))
		}
		r.Executions.Hear(&traffic.Report{Goes: true, Execution: history.Execution{Task: "a", Node: "works", Begin: 1}})
		kill := &Kind{Name: history.KillKind, scope: oneNode}
		if n := claim(r, kill); n.SessionID() != "works" {
			t.Errorf("seed %d: %s is killed first", seed, n.SessionID())
		}
		if n := claim(r, kill); n.SessionID() == "works" {
			t.Errorf("seed %d: %s is claimed twice", seed, n.SessionID())
		}
	}
}

// Every round of a plan is made, also when the time is over before.
func TestDisturb_MakesEveryRound(t *testing.T) {
	t.Parallel()
	r := busy()
	r.Random, r.Settings.Duration = rand.New(rand.NewPCG(1, 0)), time.Nanosecond
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var made []string
	var p Plan
	for _, name := range []string{"a", "b", "c"} {
		p = append(p, []*Kind{{Name: name, inflict: func(context.Context, *cluster.Cluster, disturbance) (string, string, error) {
			made = append(made, name)
			if len(made) == 3 {
				cancel() // nothing more to wait for
			}
			return "target", "proof", nil
		}}})
	}
	flow := time.NewTicker(time.Millisecond)
	defer flow.Stop()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		Disturb(ctx, r, p)
	}()
	for {
		select {
		case <-flow.C:
			r.Operations.Add(history.Operation{Verb: history.Submit, Task: fmt.Sprint("t", r.Operations.Answered()), Answer: history.OK})
			continue
		case <-ended:
		}
		break
	}
	if strings.Join(made, "") != "abc" || r.Faults[2].Round != 3 {
		t.Errorf("made %v, recorded %+v", made, r.Faults)
	}
}

// A fault that has nothing to bite beside another one is made again when that is over.
func TestRound_MakesAgainWhatDidNotBite(t *testing.T) { synctest.Test(t, makesAgain) }

func makesAgain(t *testing.T) {
	r := busy()
	r.Random = rand.New(rand.NewPCG(1, 0))
	shy := &Kind{Name: "shy", inflict: func(_ context.Context, _ *cluster.Cluster, d disturbance) (target, proof string, err error) {
		if d.alone {
			proof = "proof"
		}
		return "target", proof, nil
	}}
	makeRound(t.Context(), r, 1, []*Kind{shy, fake("proof", nil)})
	var kinds []string
	for _, f := range r.Faults {
		kinds = append(kinds, f.Kind)
		if f.Proof == "" {
			t.Errorf("%+v did not bite", f)
		}
	}
	if all := strings.Join(kinds, "; "); all != "shy, in vain; shy; fake" {
		t.Errorf("recorded are %s", all)
	}
}

func TestPlan_RefusesWhatIsImpossible(t *testing.T) {
	for _, kinds := range []string{"unknown", "etcd-minority-with-clients", "nats-absent,nats-restart"} {
		if _, err := NewPlan(rand.New(rand.NewPCG(1, 0)), cluster.Settings{Members: 1, Kinds: strings.Split(kinds, ",")}); err == nil {
			t.Errorf("%s is planned", kinds)
		}
	}
}

// Whoever joins must keep a limit and use it, as those who were there must: neither alone is enough.
func TestMeetLimits_AsksOfWhoJoinsWhatItAsksOfAll(t *testing.T) {
	limits, _ := faultNamed("limits-and-restart")
	for _, c := range []struct {
		name             string
		was, joins       int // attempts at once
		met, overstepped bool
	}{
		{"all work", 2, 1, true, false},
		{"only who joins meets the limit", 1, 2, true, false},
		{"nobody meets it", 1, 1, false, false},
		{"who joins does nothing", 2, 0, false, false},
		{"who was there oversteps it", 3, 1, true, true},
		{"only who joins oversteps it", 2, 3, true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := &cluster.Cluster{Servers: &cluster.Servers{}, Executions: traffic.NewExecutions(), Needs: limits.needs, Nodes: []*cluster.Node{joined("was"), joined("joins")}}
			for session, attempts := range map[string]int{"was": c.was, "joins": c.joins} {
				for i := range attempts {
					r.Executions.Hear(&traffic.Report{Behavior: "again", Goes: true, Execution: history.Execution{Node: session, Begin: int64(i)}})
				}
			}
			if met := meetLimits(r, r.Nodes[1]); met != c.met || (len(r.Damage) > 0) != c.overstepped {
				t.Errorf("met %t, damage %v; want %t, %t", met, r.Damage, c.met, c.overstepped)
			}
		})
	}
}
