package fault

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"taskledger/integration/robustness/role"
)

func TestMain(m *testing.M) {
	if isChild, code := role.Run(); isChild {
		os.Exit(code)
	}
	goleak.VerifyTestMain(m)
}
