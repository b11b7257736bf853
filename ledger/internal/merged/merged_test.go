package merged_test

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"testing"

	"taskledger/ledger/internal/merged"
)

// of yields numbers, and then the error if there is one.
func of(err error, all ...int) iter.Seq2[int, error] {
	return func(yield func(int, error) bool) {
		for _, n := range all {
			if !yield(n, nil) {
				return
			}
		}
		if err != nil {
			yield(0, err)
		}
	}
}

func TestOf_YieldsAllInOneOrderUpToTheFirstError(t *testing.T) {
	failure := errors.New("failure")
	for _, c := range []struct {
		all  []iter.Seq2[int, error]
		want string
	}{
		{nil, "[] <nil>"},
		{[]iter.Seq2[int, error]{of(nil, 1, 4, 5), of(nil), of(nil, 2, 3, 9)}, "[1 2 3 4 5 9] <nil>"},
		{[]iter.Seq2[int, error]{of(nil, 1, 4), of(failure, 2)}, "[1 2] failure"},
		{[]iter.Seq2[int, error]{of(nil, 1), of(failure)}, "[] failure"},
	} {
		got, last := []int{}, error(nil)
		for n, err := range merged.Of(slices.Values(c.all), func(a, b int) bool { return a < b }) {
			if last = err; err == nil {
				got = append(got, n)
			}
		}
		if is := fmt.Sprint(got, " ", last); is != c.want {
			t.Errorf("%s, want %s", is, c.want)
		}
	}
}
