package works_test

import (
	"testing"

	"go.uber.org/goleak"

	"taskledger/internal/testkit"
)

func TestMain(m *testing.M) {
	testkit.AtOnce(4)
	goleak.VerifyTestMain(m)
}
