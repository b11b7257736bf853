package fault

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"taskledger/integration/robustness/cluster"
	"taskledger/internal/testkit"
)

func TestMain(m *testing.M) {
	if isChild, code := cluster.RunRole(); isChild {
		os.Exit(code)
	}
	testkit.AtOnce(4)
	goleak.VerifyTestMain(m)
}
