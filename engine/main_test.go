package engine_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"taskledger/internal/testkit"
)

// TestMain lets many tests run side by side: those with clusters mostly wait for sessions to end.
func TestMain(m *testing.M) {
	testkit.AtOnce(12)
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if names := leftOut(); code == 0 && len(names) > 0 {
			fmt.Printf("neither inFiles nor notInFiles has %s\n", strings.Join(names, ", "))
			code = 1
		}
		os.Exit(code)
	}))
}
