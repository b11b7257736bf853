package taskstoretest_test

import (
	"testing"

	"go.uber.org/goleak"

	"taskledger/internal/repeat"
	"taskledger/taskstore/taskstoretest"
	"taskledger/taskstore/taskstoretest/model"
)

func TestMain(m *testing.M) {
	repeat.AtOnce(4)
	goleak.VerifyTestMain(m)
}

func TestModel(t *testing.T) { taskstoretest.Run(t, taskstoretest.Subject{Backend: model.New()}) }
