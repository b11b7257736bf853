package main

import (
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"taskledger/integration/robustness/cluster"
	"taskledger/integration/robustness/fault"
)

func TestParse_RefusesWhatProvesNothing(t *testing.T) {
	for _, args := range []string{"--duration 0", "--duration -1s", "--histories 0", "--parallel 0", "--nodes 2", "--etcd 2"} {
		if _, err := parse(strings.Fields(args), io.Discard); !errors.Is(err, errUsage) {
			t.Errorf("%s: %v", args, err)
		}
	}
}

// What cannot run is told, and everything else is in some history.
func TestOptions_AllFaultsLeavesNoneOut(t *testing.T) {
	o := options{Settings: cluster.Settings{Members: 1}, all: true}
	total := newSummary()
	var planned []string
	for _, s := range o.plan(total) {
		if _, err := fault.NewPlan(rand.New(rand.NewPCG(1, 0)), s); err != nil {
			t.Error(err)
		}
		planned = append(planned, s.Kinds...)
	}
	for _, f := range fault.Kinds {
		if slices.Contains(planned, f.Name) == (total.NotRun[f.Name] != "") {
			t.Errorf("%s: planned %t, not run %q", f.Name, slices.Contains(planned, f.Name), total.NotRun[f.Name])
		}
	}
}
