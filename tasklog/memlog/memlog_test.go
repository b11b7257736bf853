package memlog_test

import (
	"testing"

	"taskledger/tasklog"
	"taskledger/tasklog/memlog"
	"taskledger/tasklog/tasklogtest"
)

func TestStore_KeepsTheContract(t *testing.T) {
	tasklogtest.Run(t, func(*testing.T) tasklogtest.Fixture {
		s := memlog.New()
		return tasklogtest.Fixture{
			Store: s,
			Empty: func(of tasklog.Attempt) { s.Empty(of, tasklogtest.Begin+1) },
		}
	})
}
