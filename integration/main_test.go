package integration_test

import (
	"testing"

	"go.uber.org/goleak"

	"taskledger/internal/repeat"
)

func TestMain(m *testing.M) {
	repeat.AtOnce(8)
	goleak.VerifyTestMain(m)
}
