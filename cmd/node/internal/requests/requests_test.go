package requests

import (
	"errors"
	"strings"
	"testing"

	"taskledger/engine"
)

func TestRead_KeepsFewOfManyWrongLinesAndCountsAll(t *testing.T) {
	_, err := Read([]byte(strings.Repeat("nonsense\n", 5000)), false, nil)
	problems, ok := errors.AsType[*Problems](err)
	if !ok || len(problems.Errs) != 10 || !strings.HasPrefix(err.Error(), "5000 lines are wrong") || !strings.HasSuffix(err.Error(), "\nand 4990 more") ||
		strings.Count(err.Error(), "\n") != 11 {
		t.Errorf("%v", err)
	}
}

func TestRead_CountsRequestsBeyondTheLimit(t *testing.T) {
	_, err := Read([]byte(strings.Repeat(`{"behavior":"noop"}`+"\n", 3000)), false, nil)
	if limit, ok := errors.AsType[*engine.LimitError](err); !ok || limit.Got != 3000 {
		t.Errorf("%v", err)
	}
}
