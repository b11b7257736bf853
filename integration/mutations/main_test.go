package main

import (
	"io"
	"path"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"taskledger/integration/bugs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestRun_OfNoMutationFailsAndNamesTheFilter(t *testing.T) {
	if err := run(t.Context(), []string{"-turn", "1", "comit"}, io.Discard); err == nil || !strings.Contains(err.Error(), "comit") {
		t.Errorf("run: %v", err)
	}
}

// The table's texts are code: they have to follow what they stand beside.
func TestLay_EveryMutationCompiles(t *testing.T) {
	t.Chdir("../..") // the root of the module
	overlay, err := lay(t.TempDir(), bugs.Mutations)
	if err != nil {
		t.Fatal(err)
	}
	var mutated []string
	for _, m := range bugs.Mutations {
		mutated = append(mutated, "./"+path.Dir(m.File))
	}
	slices.Sort(mutated)
	if err := bugs.Build(t.Context(), overlay, "build", slices.Compact(mutated)...); err != nil {
		t.Fatal(err)
	}
}
