package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"taskledger/integration/robustness/history"
	"taskledger/integration/robustness/report"
)

// busy is a run with enough in flight for a fault to meet.
func busy() *run {
	r := &run{cluster: &cluster{}, done: newOperations(), oracle: newOracle()}
	for i := range minInFlight {
		r.done.add(history.Operation{Verb: history.Submit, Task: string(rune('a' + i)), Answer: history.OK})
	}
	return r
}

func fake(proof string, err error) *fault {
	return &fault{name: "fake", inflict: func(context.Context, *run, disturbance) (string, string, error) {
		return "target", proof, err
	}}
}

func TestRobustness_RejectsAFaultThatProvesNothing(t *testing.T) {
	quiet := busy()
	quiet.done.add(history.Operation{Verb: history.Delete, Task: "a", Answer: history.OK})
	for _, c := range []struct {
		name    string
		run     *run
		fault   *fault
		problem string // "" = the run counts
	}{
		{"it bit", busy(), fake("proof", nil), ""},
		{"it did not bite", busy(), fake("", nil), "did not bite"},
		{"it failed", busy(), fake("proof", errors.New("broken")), "broken"},
		{"it met too little traffic", quiet, fake("proof", nil), "9 tasks in flight"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.run.inflict(t.Context(), c.fault, disturbance{})
			if len(c.run.faults) != 1 || c.run.faults[0].Kind != "fake" {
				t.Errorf("recorded are %v, want the one fault", c.run.faults)
			}
			problems := strings.Join(c.run.problems, "; ")
			if (problems == "") != (c.problem == "") || !strings.Contains(problems, c.problem) {
				t.Errorf("problems: %q, want %q", problems, c.problem)
			}
			verdict := report.Verdict(&history.Run{Info: history.Info{Problems: c.run.problems}}, nil)
			if (verdict == "passed") != (c.problem == "") {
				t.Errorf("the run is %s", verdict)
			}
		})
	}
}

func TestPlan_PutsTogetherWhatGoesTogether(t *testing.T) {
	seen := map[string]bool{}
	for seed := range uint64(200) {
		p, err := newPlan(rand.New(rand.NewPCG(seed, 0)), settings{members: 3})
		if err != nil {
			t.Fatal(err)
		}
		for _, round := range p {
			for _, f := range round {
				seen[f.name] = true
				if p.needs(needAbsent) && f.needs&(needNATS|needTight) != 0 {
					t.Errorf("seed %d: %s in a history without NATS", seed, f.name)
				}
			}
			if len(round) == 2 && (round[0].clashes(round[1]) || round[0].scope == nothing && round[0] == round[1]) || len(round) > 2 {
				t.Errorf("seed %d: %s is in force with %s", seed, round[0].name, round[1].name)
			}
		}
	}
	for _, f := range faults {
		if !seen[f.name] {
			t.Errorf("%s is never drawn", f.name)
		}
	}
}

func TestPlan_RefusesWhatIsImpossible(t *testing.T) {
	for _, kinds := range []string{"unknown", "etcd-minority-with-clients", "nats-absent,nats-restart"} {
		if _, err := newPlan(rand.New(rand.NewPCG(1, 0)), settings{members: 1, kinds: strings.Split(kinds, ",")}); err == nil {
			t.Errorf("%s is planned", kinds)
		}
	}
}

// What cannot run is told, and everything else is in some history.
func TestOptions_AllFaultsLeavesNoneOut(t *testing.T) {
	o := options{settings: settings{members: 1}, all: true}
	total := newSummary()
	var planned []string
	for _, s := range o.plan(total) {
		if _, err := newPlan(rand.New(rand.NewPCG(1, 0)), s); err != nil {
			t.Error(err)
		}
		planned = append(planned, s.kinds...)
	}
	for _, f := range faults {
		if slices.Contains(planned, f.name) == (total.NotRun[f.name] != "") {
			t.Errorf("%s: planned %t, not run %q", f.name, slices.Contains(planned, f.name), total.NotRun[f.name])
		}
	}
}
