package processes_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"taskledger/internal/testkit"
)

func TestMain(m *testing.M) {
	if isChild, code := runAsChild(); isChild {
		os.Exit(code)
	}
	testkit.AtOnce(8)
	goleak.VerifyTestMain(m)
}
