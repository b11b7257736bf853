package main

import (
	"io"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestRun_OfNoMutationFailsAndNamesTheFilter(t *testing.T) {
	if err := run(t.Context(), []string{"comit"}, io.Discard); err == nil || !strings.Contains(err.Error(), "comit") {
		t.Errorf("run: %v", err)
	}
}
