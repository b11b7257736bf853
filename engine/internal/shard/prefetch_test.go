package shard

import (
	"errors"
	"testing"
	"testing/synctest"
)

// numbers yields 0 to 9 and then an error, and counts in made what it has yielded.
func numbers(made *int, err error) func(func(int, error) bool) {
	return func(yield func(int, error) bool) {
		for i := range 10 {
			*made++
			if !yield(i, nil) {
				return
			}
		}
		yield(0, err)
	}
}

func TestPrefetch_YieldsAllInOrderWithTheErrorLast(t *testing.T) {
	made, broken := 0, errors.New("broken")
	next := 0
	for i, err := range prefetch(numbers(&made, broken), 3) {
		if next == 10 {
			if !errors.Is(err, broken) {
				t.Errorf("at the end: %v", err)
			}
		} else if i != next || err != nil {
			t.Errorf("%d, %v, want %d", i, err, next)
		}
		next++
	}
	if next != 11 {
		t.Errorf("%d values", next)
	}
}

func TestPrefetch_RunsAheadAsFarAsAllowedAndEndsWithItsConsumer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		made := 0
		for i := range prefetch(numbers(&made, nil), 3) {
			synctest.Wait()
			if i == 0 && made != 5 { // one taken, three that wait, one on its way
				t.Errorf("%d values were made before the second was taken", made)
			}
			if i == 1 {
				break
			}
		}
		if made > 6 {
			t.Errorf("%d values were made", made)
		}
	})
}
