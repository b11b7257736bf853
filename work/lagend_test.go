package work_test

import (
	"context"
	"errors"
	"testing"

	"taskledger/behaviors"
	"taskledger/work"
)

// lastOpen returns how many changes the record tells to be open.
func (r *streamRecord) lastOpen() int64 {
	if len(r.moves) == 0 {
		return 0
	}
	return r.moves[len(r.moves)-1].Open
}

// The stream stops at its first change, or behind others that it has processed, sooner than the lag is told while it
// runs.
func TestLiveSync_AStreamThatStopsTellsThatChangesAreOpenUntilThereAreNone(t *testing.T) {
	for _, imprecise := range []bool{false, true} {
		for _, at := range []int{1, 30} {
			withThreads(t, func(t *testing.T, threads int64) {
				src, r := objects(40), newStreamRecord()
				src.process = func(_ context.Context, place int) error {
					if place == at {
						return errDisk
					}
					return nil
				}
				s := src.stream(threads)
				s.Imprecise = imprecise
				for range 2 {
					if err := attemptStream(t, t.Context(), r, s); err == nil {
						t.Fatal("it goes on")
					}
					if r.lastOpen() < 1 {
						t.Errorf("stopped at change %d of 40, and it tells that %d are open", at, r.lastOpen())
					}
				}
				src.keys, src.process = src.keys[:at-1], nil // the source forgets the change
				runStream(t, r, s)
				if r.lastOpen() != 0 {
					t.Errorf("nothing is left, and it tells that %d are open", r.lastOpen())
				}
			})
		}
	}
}

func TestLiveSync_AStreamWhoseSourceFailsTellsThatAChangeIsOpen(t *testing.T) {
	withThreads(t, func(t *testing.T, threads int64) {
		for _, at := range []int{1, 7} {
			src, r := objects(20), newStreamRecord()
			src.fetch = func(_ context.Context, place int) error {
				if place == at {
					return errDisk
				}
				return nil
			}
			if err := attemptStream(t, t.Context(), r, src.stream(threads)); !errors.Is(err, errDisk) {
				t.Fatal(err)
			}
			if r.lastOpen() < 1 {
				t.Errorf("the source has failed at change %d, and it tells that %d are open", at, r.lastOpen())
			}
			src.fetch, src.keys = nil, src.keys[:at-1]
			runStream(t, r, src.stream(threads))
			if r.lastOpen() != 0 {
				t.Errorf("nothing is left, and it tells that %d are open", r.lastOpen())
			}
		}
	})
}

func TestAsync_AStreamThatStopsAtItsFirstMessageTellsThatItIsOpen(t *testing.T) {
	withThreads(t, func(t *testing.T, threads int64) {
		q, r := newQueue("a"), newStreamRecord()
		s := q.stream(threads)
		s.Process = func(context.Context, change) error { return behaviors.Code("disk", errDisk, nil) }
		s.Rules = []work.Rule{{Code: "disk", React: work.Stop}}
		if err := attemptStream(t, t.Context(), r, s); err == nil {
			t.Fatal("it goes on")
		}
		if r.lastOpen() != 1 {
			t.Errorf("it tells that %d messages are open", r.lastOpen())
		}
	})
}
