package integration_test

import (
	"testing"

	"go.uber.org/goleak"

	"taskledger/internal/testkit"
)

func TestMain(m *testing.M) {
	testkit.AtOnce(8)
	goleak.VerifyTestMain(m)
}
