package integration_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if isChild, code := runAsChild(); isChild {
		os.Exit(code)
	}
	goleak.VerifyTestMain(m)
}
