package mirror_test

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"taskledger/cmd/node/internal/mirror"
	"taskledger/store"
	"taskledger/work/progress"
)

func TestFollow_ALineInTheWordsOfWorkShowIsToldEveryFewSeconds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		done := uint64(0)
		var out strings.Builder
		err := mirror.Follow(ctx, "mirror-1", false, &out, func(context.Context) (progress.Work, error) {
			done++
			of := progress.Work{
				State:    progress.InProgress,
				Progress: fmt.Sprintf("%d %% in 3/6", done),
				Items:    progress.Items{Done: 2 * done, Failed: 1},
			}
			if done > 12 {
				of.State = progress.Suspended
			}
			return of, nil
		})
		if err != nil {
			t.Error(err)
		}
		want := "mirror-1: 6 % in 3/6; 12 items done, 0 skipped, 1 failed\n" +
			"mirror-1: 12 % in 3/6; 24 items done, 0 skipped, 1 failed\n" +
			"mirror-1: suspended, 18 % in 3/6; 36 items done, 0 skipped, 1 failed\n"
		if out.String() != want {
			t.Errorf("told\n%swant\n%s", &out, want)
		}
	})
}

// A question may be under way for long when the time is over: the error tells the time that has really passed.
func TestFollow_AProcessThatHasJoinedTellsHowLongItReallyWaited(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		asks := func(ctx context.Context) (progress.Work, error) {
			<-ctx.Done()
			return progress.Work{}, fmt.Errorf("ask: %w", store.ErrUnavailable)
		}
		err := mirror.Follow(t.Context(), "mirror-1", true, io.Discard, asks)
		waited := time.Since(began)
		if waited <= mirror.SilentFor || err == nil {
			t.Fatalf("it gave up after %s: %v", waited, err)
		}
		if want := "has not answered for " + waited.Round(time.Second).String() + ":"; !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	})
}

// The first process waits for servers that are its own.
func TestFollow_TheFirstProcessDoesNotGiveUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*mirror.SilentFor)
		defer cancel()
		asks := func(context.Context) (progress.Work, error) { return progress.Work{}, store.ErrUnavailable }
		if err := mirror.Follow(ctx, "mirror-1", false, io.Discard, asks); err != nil {
			t.Error(err)
		}
	})
}
