package main

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"taskledger/integration/robustness/cluster"
)

func TestMain(m *testing.M) {
	if isChild, code := cluster.RunRole(); isChild {
		os.Exit(code)
	}
	goleak.VerifyTestMain(m)
}
