package main

import (
	"strings"
	"testing"

	"go.uber.org/goleak"

	"taskledger/integration/bugs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestRun_OfNoMutationFailsAndNamesTheFilter(t *testing.T) {
	if err := run(t.Context(), "comit"); err == nil || !strings.Contains(err.Error(), "comit") {
		t.Errorf("run: %v", err)
	}
}

// The table's texts are code: they have to follow what they stand beside.
func TestBuild_EveryMutationCompiles(t *testing.T) {
	t.Chdir("../..") // the root of the module
	if _, err := build(t.Context(), t.TempDir(), bugs.Mutations); err != nil {
		t.Fatal(err)
	}
}
