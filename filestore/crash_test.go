package filestore_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"

	"taskledger/events"
	"taskledger/filestore"
	"taskledger/filestore/filejournal"
	"taskledger/filestore/internal/faultdisk"
	"taskledger/internal/testkit"
	"taskledger/store"
)

// crashSteps are enough for several segments, of which some are rewritten and removed.
const crashSteps = 60

// begin makes a history on a new disk, which is killed at its nth change, 0 = never.
func begin(t *testing.T, seed uint64, o filejournal.Options, n int) (*history, *faultdisk.Disk, error) {
	t.Helper()
	h, d := newHistory(t, seed), faultdisk.New()
	if n > 0 {
		d.KillAt(n)
	}
	err := h.open(d, o)
	if err == nil {
		err = h.run(crashSteps)
	}
	return h, d, err
}

// changes returns the changes of a whole history: all in a proof, else some that the seed picks.
func changes(t *testing.T, seed uint64, o filejournal.Options, nth int) (all []int) {
	t.Helper()
	h, d, err := begin(t, seed, o, 0)
	if err != nil {
		t.Fatal(err)
	}
	for n := range d.Changes() {
		all = append(all, n+1)
	}
	if err := h.journal.Close(); err != nil {
		t.Fatal(err)
	}
	return testkit.Some(all[seed%4:], nth)
}

// storeFates tell what a loss of power may leave: nothing that was not synced, all of it, the first bytes, any sectors.
func storeFates(random *rand.Rand) map[string]faultdisk.Fate {
	all, none := func(n int) int { return n }, func(int) int { return 0 }
	some := func(n int) int { return random.IntN(n + 1) }
	yes, coin := func() bool { return true }, func() bool { return random.IntN(2) == 0 }
	synced, written := func(s, _ int) int { return s }, func(_, w int) int { return w }
	between := func(s, w int) int { return min(s, w) + random.IntN(max(s, w)-min(s, w)+1) }
	return map[string]faultdisk.Fate{
		"nothing":        {Names: none, Length: synced, Sector: func() bool { return false }},
		"names":          {Names: all, Length: synced, Sector: func() bool { return false }},
		"everything":     {Names: all, Length: written, Sector: yes},
		"first bytes":    {Names: some, Length: between, Sector: yes},
		"any sectors":    {Names: all, Length: written, Sector: coin},
		"bytes, sectors": {Names: some, Length: between, Sector: coin},
		"any names":      {Names: all, Name: coin, Length: written, Sector: yes},
		"any of all":     {Names: all, Name: coin, Length: between, Sector: coin},
	}
}

// crashSeeds are more in a proof.
func crashSeeds() (all []uint64) {
	for n := range testkit.Times(1, 8) {
		all = append(all, uint64(n)+1)
	}
	return all
}

func TestStore_ACrashOfTheMachineLosesNoMoreThanThePromise(t *testing.T) {
	for durability, nth := range map[filejournal.Durability]int{filejournal.Strict: 7, filejournal.Opportunistic: 41} {
		for _, seed := range crashSeeds() {
			t.Run(fmt.Sprint(durability, seed), func(t *testing.T) {
				t.Parallel()
				o := small(durability)
				for i, n := range changes(t, seed, o, nth) {
					if testkit.Whole() && durability == filejournal.Opportunistic && i%8 != int(seed%8) {
						continue // after each of them a thousand numbers are taken
					}
					for fate := range storeFates(nil) {
						h, d, err := begin(t, seed, o, n)
						if !errors.Is(err, faultdisk.ErrKilled) {
							t.Fatalf("change %d: %v", n, err)
						}
						after, next := d.Crash(storeFates(rand.New(rand.NewPCG(seed, uint64(n))))[fate]), o
						next.Boot = "second"
						if err := h.goOn(after, next, durability == filejournal.Opportunistic); err != nil {
							t.Fatalf("killed at change %d of seed %d, keeping %s: %v", n, seed, fate, err)
						}
					}
				}
			})
		}
	}
}

func TestStore_ACrashOfTheProcessLosesNothing(t *testing.T) {
	for _, durability := range []filejournal.Durability{filejournal.Strict, filejournal.Opportunistic} {
		for _, seed := range crashSeeds() {
			t.Run(fmt.Sprint(durability, seed), func(t *testing.T) {
				t.Parallel()
				o := small(durability)
				for _, n := range changes(t, seed, o, 3) {
					h, d, err := begin(t, seed, o, n)
					if !errors.Is(err, faultdisk.ErrKilled) {
						t.Fatalf("change %d: %v", n, err)
					}
					if err := h.goOn(d.Restart(), o, false); err != nil {
						t.Fatalf("killed at change %d of seed %d: %v", n, seed, err)
					}
				}
			})
		}
	}
}

// What waits for room goes on when there is some, and what is refused leaves nothing behind that is in the way.
func TestStore_WithoutRoomForAnyChangeLosesNothingAndGoesOn(t *testing.T) {
	for _, durability := range []filejournal.Durability{filejournal.Strict, filejournal.Opportunistic} {
		for _, seed := range crashSeeds() {
			t.Run(fmt.Sprint(durability, seed), func(t *testing.T) {
				t.Parallel()
				o := small(durability)
				for _, n := range changes(t, seed, o, 3) {
					synctest.Test(t, func(t *testing.T) {
						if err := fillsUp(t, seed, o, n); err != nil {
							t.Fatalf("no room from change %d of seed %d on: %v", n, seed, err)
						}
					})
				}
			})
		}
	}
}

// fillsUp makes a history whose disk is full from its nth change on, and then has room again.
func fillsUp(t *testing.T, seed uint64, o filejournal.Options, n int) error {
	h, d := newHistory(t, seed), faultdisk.New()
	d.FailAt(n, syscall.ENOSPC)
	opened := h.open(d, o)
	failed := opened
	if opened == nil {
		failed = h.run(crashSteps)
	}
	if !errors.Is(failed, syscall.ENOSPC) && !strings.Contains(fmt.Sprint(failed), syscall.ENOSPC.Error()) {
		return fmt.Errorf("it fails with %w", failed)
	}
	d.FailAt(0, nil)
	if opened == nil && errors.Is(failed, store.ErrFull) {
		for shard := range h.told {
			if got := h.store.Last(shard).Number; got != uint64(len(h.told[shard].entries)) && h.told[shard].losing == h.told[shard].loss {
				return fmt.Errorf("shard %d ends with entry %d, and %d were answered", shard, got, len(h.told[shard].entries))
			}
		}
		if err := errors.Join(h.check(false), h.adopt()); err != nil {
			return fmt.Errorf("at once: %w", err)
		}
		if err := h.run(12); err != nil {
			return fmt.Errorf("with room again: %w", err)
		}
	}
	if h.journal != nil && opened == nil {
		if err := h.check(false); err != nil { // reading goes on, whatever became of writing
			return fmt.Errorf("after it: %w", err)
		}
	}
	return h.goOn(d.Restart(), o, false)
}

// A file system turns read-only when it finds errors: nothing more is written, and everything can still be read.
func TestStore_OnADiskThatTurnsReadOnlyReadsGoOn(t *testing.T) {
	for _, durability := range []filejournal.Durability{filejournal.Strict, filejournal.Opportunistic} {
		o := small(durability)
		for _, steps := range testkit.Some([]int{0, 1, 5, 10, 17, 25, 33, 40, 50, 60}, 3) {
			h, d := newHistory(t, 1), faultdisk.New()
			if err := h.open(d, o); err != nil {
				t.Fatal(err)
			}
			if err := h.run(steps); err != nil {
				t.Fatal(err)
			}
			d.Freeze()
			contents := d.Contents()
			err := h.run(50)
			if !errors.Is(err, syscall.EROFS) || errors.Is(err, store.ErrFull) {
				t.Errorf("%s, after %d steps: written: %v", durability, steps, err)
			}
			if err := h.check(false); err != nil {
				t.Errorf("%s, after %d steps: %v", durability, steps, err)
			}
			if err := h.open(d, o); !errors.Is(err, syscall.EROFS) {
				t.Errorf("%s, after %d steps: opened: %v", durability, steps, err)
			}
			if !maps.EqualFunc(contents, d.Contents(), slices.Equal) {
				t.Errorf("%s, after %d steps: something has changed", durability, steps)
			}
			if err := h.goOn(d.Restart(), o, false); err != nil {
				t.Errorf("%s, after %d steps, written again: %v", durability, steps, err)
			}
		}
	}
}

// A flipped bit is told by the name of its file, or nothing that was answered is missing or wrong.
func TestStore_AnyFlippedBitIsNamedOrDoesNotMatter(t *testing.T) {
	for name, clean := range map[string]bool{"AfterACleanEnd": true, "AfterACrash": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := small(filejournal.Strict)
			h, d, err := begin(t, 2, o, 0)
			if err == nil && clean {
				err = h.journal.Close()
			}
			if err != nil {
				t.Fatal(err)
			}
			contents := d.Restart().Contents()
			for _, file := range slices.Sorted(maps.Keys(contents)) {
				for _, at := range flipped(len(contents[file])) {
					for bit := range 8 {
						if len(contents[file]) > 200 && bit != at%8 { // text is short, and its bits differ
							continue
						}
						contents[file][at] ^= 1 << bit
						if err := h.survives(contents, file, o); err != nil {
							t.Fatalf("bit %d at offset %d of %s: %v", bit, at, file, err)
						}
						contents[file][at] ^= 1 << bit
					}
				}
			}
		})
	}
}

// flipped returns the offsets of a file in which bits flip: all of a short one and in a proof.
func flipped(length int) (all []int) {
	for at := range length {
		all = append(all, at)
	}
	if length <= 200 {
		return all
	}
	return testkit.Some(all, 31)
}

// survives opens a store one of whose files is damaged.
func (h *history) survives(contents map[string][]byte, file string, o filejournal.Options) error {
	d := faultdisk.Of(contents)
	err := h.open(d, o)
	if err == nil {
		if err = h.check(false); err == nil {
			return h.journal.Close()
		}
		_ = h.journal.Close()
	} else if !errors.Is(err, events.ErrDamaged) && !errors.Is(err, filejournal.ErrFormat) && !errors.Is(err, filestore.ErrFormat) {
		return err
	}
	if !strings.Contains(err.Error(), file) {
		return fmt.Errorf("the file is not named: %w", err)
	}
	return nil
}
