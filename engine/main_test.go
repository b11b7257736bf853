package engine_test

import (
	"testing"

	"go.uber.org/goleak"

	"taskledger/internal/repeat"
)

// TestMain lets many tests run side by side: those with clusters mostly wait for sessions to end.
func TestMain(m *testing.M) {
	repeat.AtOnce(12)
	goleak.VerifyTestMain(m)
}
