package taskstoretest_test

import (
	"testing"

	"go.uber.org/goleak"

	"taskledger/internal/repeat"
	"taskledger/taskstore/taskstoretest"
	"taskledger/taskstore/taskstoretest/model"
)

func TestMain(m *testing.M) {
	repeat.AtOnce(8)
	goleak.VerifyTestMain(m)
}

func TestModel(t *testing.T) {
	t.Parallel()
	taskstoretest.Run(t, taskstoretest.Subject{Backend: model.New(repeat.Rand(t))})
}
