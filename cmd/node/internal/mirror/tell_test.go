package mirror_test

import (
	"encoding/json"
	"errors"
	"testing"

	"taskledger/cmd/node/internal/mirror"
	"taskledger/task"
	"taskledger/work/progress"
)

func TestCounts_OfAnEndThatIsNoSuccessHaveItsReason(t *testing.T) {
	t.Parallel()
	failed := []progress.ItemError{{Item: "a/b", Code: "failed", Message: "no"}}
	lost := &task.Error{Code: "lost", Message: "gone"}
	for _, c := range []struct {
		outcome  error
		failures []progress.ItemError
		want     string
	}{
		{nil, nil, `{"task":"m","copied":0,"deleted":0,"failed":0}`},
		{&mirror.FailedError{Items: 1}, failed, `{"task":"m","copied":0,"deleted":0,"failed":1,"error":{"code":"items",` +
			`"message":"1 files, links or directories could not be mirrored"},` +
			`"failures":[{"item":"a/b","code":"failed","message":"no"}]}`},
		{errors.Join(&mirror.LimitError{Limit: 7}), nil, `{"task":"m","copied":0,"deleted":0,"failed":0,"error":{"code":"threshold",` +
			`"message":"more than 7 files, links and directories would be deleted (--max-deletes): nothing was changed; ` +
			`begin again with a higher limit if they are to go"}}`},
		{lost, nil, `{"task":"m","copied":0,"deleted":0,"failed":0,"error":{"code":"lost","message":"gone"}}`},
	} {
		if got, err := json.Marshal(mirror.CountsOf("m", c.failures, c.outcome)); err != nil || string(got) != c.want {
			t.Errorf("%v\n%s, want\n%s", err, got, c.want)
		}
	}
}

func TestCounts_AreToldAsTheMostWherePermitsAreUncertain(t *testing.T) {
	t.Parallel()
	of := progress.Work{
		Task: "m",
		Partitions: []progress.Partition{
			{Mode: "full", Thresholds: []progress.Threshold{{Counter: "copies", Count: 7}}},
			{Mode: "full", Thresholds: []progress.Threshold{{Counter: "deletes", Count: 3}}},
		},
	}
	for uncertain, want := range map[uint64][2]string{
		0: {"copied 7\ndeleted 3\n", `{"task":"m","copied":7,"deleted":3,"failed":0}`},
		1: {"copied 7 at most\ndeleted 3 at most\n", `{"task":"m","copied":7,"deleted":3,"failed":0,"at_most":true}`},
	} {
		of.Permits.Uncertain = uncertain
		words, counts := mirror.EndOf(&of)
		got, err := json.Marshal(counts)
		if err != nil || words != want[0] || string(got) != want[1] {
			t.Errorf("%d uncertain: %q and %s, want %q and %s", uncertain, words, got, want[0], want[1])
		}
	}
}
