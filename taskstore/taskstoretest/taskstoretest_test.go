package taskstoretest_test

import (
	"testing"

	"go.uber.org/goleak"

	"taskledger/internal/testkit"
	"taskledger/taskstore/taskstoretest"
	"taskledger/taskstore/taskstoretest/model"
)

func TestMain(m *testing.M) {
	testkit.AtOnce(8)
	goleak.VerifyTestMain(m)
}

func TestModel(t *testing.T) {
	t.Parallel()
	taskstoretest.Run(t, taskstoretest.Subject{Backend: model.New(testkit.Rand(t))})
}
