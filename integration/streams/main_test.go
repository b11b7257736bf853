package streams_test

import (
	"testing"

	"go.uber.org/goleak"

	"taskledger/internal/repeat"
)

func TestMain(m *testing.M) {
	repeat.AtOnce(4)
	goleak.VerifyTestMain(m)
}
