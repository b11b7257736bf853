package main_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"taskledger/integration/robustness/check"
	"taskledger/integration/simulation/build"
	"taskledger/internal/testkit"
)

// built is the program, built once for all tests, in a folder that TestMain removes.
var built = sync.OnceValues(func() (program string, err error) {
	if builtIn, err = os.MkdirTemp("", "simulation-"); err != nil {
		return "", err
	}
	return build.Build(context.Background(), builtIn, "")
})

var builtIn string // "" when no test needed it

func program(t *testing.T) string {
	t.Helper()
	p, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestSimulation_SameSeedSameHistory(t *testing.T) {
	t.Parallel()
	seeds := uint64(testkit.Times(4, 30))
	p := program(t)
	elsewhere := filepath.Join(t.TempDir(), strings.Repeat("far", 40))
	if err := os.Link(p, elsewhere); err != nil {
		t.Fatal(err)
	}
	var before []byte
	for seed := uint64(1); seed <= seeds; seed++ {
		var prints [2][]byte
		for i, path := range []string{p, elsewhere} {
			var err error
			if prints[i], err = build.Run(t.Context(), path, seed); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(prints[0], prints[1]) {
			t.Errorf("two histories of seed %d differ", seed)
		}
		if bytes.Equal(prints[0], before) {
			t.Errorf("seeds %d and %d make the same history", seed-1, seed)
		}
		before = prints[0]
	}
}

func TestSimulation_HistoriesKeepTheInvariants(t *testing.T) {
	t.Parallel()
	const leastKinds = 10
	histories := testkit.Times(20, 40)
	p := program(t)
	bit := map[string]bool{}
	judged := 0
	for seed := range uint64(histories) {
		h, err := build.History(t.Context(), p, seed+1)
		if err != nil {
			t.Fatal(err)
		}
		if len(h.Info.Problems) > 0 { // it proves nothing
			continue
		}
		judged++
		for _, f := range h.Faults {
			if f.Proof != "" {
				bit[f.Kind] = true
			}
		}
		for _, v := range check.All(h) {
			t.Errorf("%s: %s", h.Info.Command, v)
		}
	}
	if least := histories / 2; judged < least {
		t.Errorf("%d histories proved something, want %d", judged, least)
	}
	if len(bit) < leastKinds {
		t.Errorf("faults of %d kinds bit in %d histories, want %d", len(bit), judged, leastKinds)
	}
}
