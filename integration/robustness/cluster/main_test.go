package cluster

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if isChild, code := RunRole(); isChild {
		os.Exit(code)
	}
	goleak.VerifyTestMain(m)
}
