package work_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"taskledger/work"
)

// A bucket that takes long tells how many of its items have ended; one that does not costs nothing.
func TestAttempt_TellsEveryTenSecondsHowManyItemsOfABucketHaveEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []string
		begun := time.Now()
		w := work.Define("numbers", nil, partition{
			ID:    "slow",
			Items: numbers,
			Process: func(_ context.Context, n int) error {
				switch {
				case n < 5: // all of the first bucket
					return nil
				case n == 5:
					time.Sleep(9 * time.Second)
					return errDisk
				}
				time.Sleep(4 * time.Second)
				return work.Skip("odd")
			},
			Segmentation: cut(10, 2),
		})
		_, err := w.Attempt(t.Context(), newRecord().attempt(), 0, work.Attempt{Progress: func(done, _ int64, note string) {
			told = append(told, fmt.Sprintf("%v %s: %d", time.Since(begun), note, done))
		}})
		if err != nil && !errors.Is(err, errDisk) {
			t.Fatal(err)
		}
		want := []string{"10s bucket 2 of slow: 1", "20s bucket 2 of slow: 3"}
		if !slices.Equal(told, want) {
			t.Errorf("%q, want %q", told, want)
		}
	})
}

// An item that hangs ends with its context, and with it all that tells.
func TestAttempt_WhoseNextItemHangsTellsOnceOfThoseBefore(t *testing.T) {
	for _, threads := range []int64{1, 3} {
		synctest.Test(t, func(t *testing.T) {
			var told []string
			begun := time.Now()
			w := work.Define("numbers", nil, partition{
				ID:      "stuck",
				Items:   numbers,
				Threads: threads,
				Process: func(ctx context.Context, n int) error {
					switch {
					case n == 4:
						time.Sleep(14 * time.Second)
					case n > 4:
						<-ctx.Done()
						return context.Cause(ctx)
					}
					return nil
				},
				Segmentation: cut(10, 1),
			})
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			_, err := w.Attempt(ctx, newRecord().attempt(), 0, work.Attempt{Progress: func(done, _ int64, note string) {
				told = append(told, fmt.Sprintf("%v %s: %d", time.Since(begun), note, done))
			}})
			want := []string{"10s bucket 1 of stuck: 4", "20s bucket 1 of stuck: 5"}
			if !errors.Is(err, context.DeadlineExceeded) || !slices.Equal(told, want) {
				t.Errorf("%d threads: %v, %q, want %q", threads, err, told, want)
			}
		})
	}
}
