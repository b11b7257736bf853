package main_test

import (
	"bytes"
	"context"
	"os"
	"sync"
	"testing"
	"time"

	"taskledger/integration/robustness/check"
	"taskledger/integration/simulation/build"
	"taskledger/integration/simulation/machine"
)

// opened is what TestMain closes; nil when no test needed it.
var opened *machine.Machine

// loaded builds and loads the program once for all tests.
var loaded = sync.OnceValues(func() (*machine.Machine, error) {
	dir, err := os.MkdirTemp("", "simulation-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	path, err := build.Build(context.Background(), dir, "")
	if err != nil {
		return nil, err
	}
	program, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	opened, err = machine.Load(context.Background(), program)
	return opened, err
})

func load(t *testing.T) *machine.Machine {
	t.Helper()
	m, err := loaded()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestSimulation_SameSeedSameHistory(t *testing.T) {
	m := load(t)
	var prints [3][]byte
	for i, seed := range []uint64{7, 7, 8} {
		var err error
		if prints[i], err = m.Run(t.Context(), seed); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(prints[0], prints[1]) {
		t.Error("two histories of one seed differ")
	}
	if bytes.Equal(prints[0], prints[2]) {
		t.Error("two seeds make the same history")
	}
}

// enough bounds the time in which TestSimulation_HistoriesKeepTheInvariants makes histories.
const enough = 30 * time.Second

func TestSimulation_HistoriesKeepTheInvariants(t *testing.T) {
	m := load(t)
	const most, least = 40, 3
	kinds := map[string]bool{}
	began, judged := time.Now(), 0
	for seed := uint64(1); seed <= most && (judged < least || time.Since(began) < enough); seed++ {
		h, err := m.History(t.Context(), seed)
		if err != nil {
			t.Fatal(err)
		}
		if len(h.Info.Problems) > 0 { // it proves nothing
			continue
		}
		judged++
		for _, f := range h.Faults {
			kinds[f.Kind] = true
		}
		for _, v := range check.All(h) {
			t.Errorf("%s: %s", h.Info.Command, v)
		}
	}
	if judged < least {
		t.Errorf("%d histories proved something, want %d", judged, least)
	}
	t.Logf("%d histories, %d kinds of faults", judged, len(kinds))
}
