package fault

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"taskledger/integration/robustness/role"
	"taskledger/internal/repeat"
)

func TestMain(m *testing.M) {
	if isChild, code := role.Run(); isChild {
		os.Exit(code)
	}
	repeat.AtOnce(4)
	goleak.VerifyTestMain(m)
}
