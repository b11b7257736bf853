package filearchive_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"

	"taskledger/events"
	"taskledger/filestore/filearchive"
	"taskledger/filestore/internal/faultdisk"
	"taskledger/internal/testkit"
	"taskledger/store"
	"taskledger/store/archivetest"
)

// history holds what was asked of an archive and what was answered, by shard.
type history struct {
	t       *testing.T
	random  *rand.Rand
	archive *filearchive.Archive
	all     map[int][]store.Record // of each shard, more than is ever archived
	heads   map[int]store.ArchiveHead
	asked   map[int]int // so many entries were to be archived by the call that was not answered
}

const (
	crashShards = 2
	// crashEntries bounds the entries of a shard that a history archives.
	crashEntries = 120
)

func newHistory(t *testing.T, seed uint64, all map[int][]store.Record) *history {
	return &history{
		t:      t,
		random: rand.New(rand.NewPCG(seed, 4)),
		all:    all,
		heads:  map[int]store.ArchiveHead{},
		asked:  map[int]int{},
	}
}

func entries(t *testing.T) map[int][]store.Record {
	t.Helper()
	all := map[int][]store.Record{}
	for shard := range crashShards {
		for number := range uint64(crashEntries) {
			r := archivetest.Entry(t, shard, number+1, int(number*37%900), archivetest.Task(number%7))
			all[shard] = append(all[shard], r)
		}
	}
	return all
}

// run archives some entries at a time until the archive fails.
func (h *history) run(steps int) error {
	for range steps {
		shard := h.random.IntN(crashShards)
		head := h.heads[shard]
		some := h.all[shard][head.Entry:]
		some = some[:1+h.random.IntN(min(5, len(some)))]
		h.asked[shard] = len(some)
		next, err := h.archive.Archive(context.Background(), shard, head, some)
		if err != nil {
			return err
		}
		delete(h.asked, shard)
		h.heads[shard] = next
	}
	return nil
}

// check compares an archive with what was answered, and takes a segment that was asked for and is there as answered.
func (h *history) check(a *filearchive.Archive) error {
	for shard := range crashShards {
		was, asked := h.heads[shard], h.asked[shard]
		is, err := a.Head(h.t.Context(), shard)
		if err != nil {
			return err
		}
		next := was.Entry + uint64(asked)
		if is != was && (asked == 0 || is.Entry != next || is.Sequence != was.Sequence+1) {
			return fmt.Errorf("the archive of shard %d ends with %+v, and %+v was answered", shard, is, was)
		}
		got, err := archivetest.Collect(a.ReadArchive(h.t.Context(), shard, 1))
		if err != nil {
			return err
		}
		same := func(a, b store.Record) bool { return a.Head == b.Head && string(a.Data) == string(b.Data) }
		if !slices.EqualFunc(got, h.all[shard][:is.Entry], same) {
			return fmt.Errorf("the archive of shard %d has %d entries, and not those up to %d", shard, len(got), is.Entry)
		}
		h.heads[shard] = is
		if is != was {
			delete(h.asked, shard)
		}
	}
	return nil
}

// goOn opens the archive of a disk, checks it, and archives some more, which must be there when it is opened again.
func (h *history) goOn(d *faultdisk.Disk) (err error) {
	for _, steps := range []int{5, 0} {
		if h.archive, err = filearchive.OpenLayer(d, "cluster"); err != nil {
			return fmt.Errorf("open: %w", err)
		}
		if err := errors.Join(h.check(h.archive), h.run(steps), h.archive.Close()); err != nil {
			return err
		}
	}
	return nil
}

const crashSteps = 20

// begin archives on a new disk, which is killed at its nth change, 0 = never.
func begin(t *testing.T, seed uint64, all map[int][]store.Record, n int) (h *history, d *faultdisk.Disk, err error) {
	t.Helper()
	h, d = newHistory(t, seed, all), faultdisk.New()
	if n > 0 {
		d.KillAt(n)
	}
	if h.archive, err = filearchive.OpenLayer(d, "cluster"); err != nil {
		return h, d, err
	}
	return h, d, h.run(crashSteps)
}

// changes returns those of a whole history.
func changes(t *testing.T, seed uint64, all map[int][]store.Record) (ns []int) {
	t.Helper()
	h, d, err := begin(t, seed, all, 0)
	if err == nil {
		err = h.check(h.archive)
	}
	if err != nil {
		t.Fatal(err)
	}
	for n := range d.Changes() {
		ns = append(ns, n+1)
	}
	return ns
}

func fates(random *rand.Rand) map[string]faultdisk.Fate {
	all, none := func(n int) int { return n }, func(int) int { return 0 }
	some := func(n int) int { return random.IntN(n + 1) }
	yes, coin := func() bool { return true }, func() bool { return random.IntN(2) == 0 }
	synced, written := func(s, _ int) int { return s }, func(_, w int) int { return w }
	between := func(s, w int) int { return min(s, w) + random.IntN(max(s, w)-min(s, w)+1) }
	return map[string]faultdisk.Fate{
		"nothing":        {Names: none, Length: synced, Sector: func() bool { return false }},
		"everything":     {Names: all, Length: written, Sector: yes},
		"first bytes":    {Names: some, Length: between, Sector: yes},
		"any sectors":    {Names: all, Length: written, Sector: coin},
		"bytes, sectors": {Names: some, Length: between, Sector: coin},
		"any names":      {Names: all, Name: coin, Length: written, Sector: yes},
		"any of all":     {Names: all, Name: coin, Length: between, Sector: coin},
		"zeros":          {Names: all, Length: written, Sector: func() bool { return false }},
	}
}

func seeds() (all []uint64) {
	for n := range testkit.Times(2, 20) {
		all = append(all, uint64(n)+1)
	}
	return all
}

func TestArchive_ACrashAtAnyChangeLosesNothingThatWasAnswered(t *testing.T) {
	all := entries(t)
	for _, seed := range seeds() {
		for _, n := range changes(t, seed, all) {
			h, d, err := begin(t, seed, all, n)
			if !errors.Is(err, faultdisk.ErrKilled) {
				t.Fatalf("change %d: %v", n, err)
			}
			before := *h
			for fate := range fates(nil) {
				h.heads, h.asked = maps.Clone(before.heads), maps.Clone(before.asked)
				random := rand.New(rand.NewPCG(seed, uint64(n)))
				if err := h.goOn(d.Crash(fates(random)[fate])); err != nil {
					t.Fatalf("the machine stopped at change %d of seed %d, keeping %s: %v", n, seed, fate, err)
				}
			}
			h.heads, h.asked = maps.Clone(before.heads), maps.Clone(before.asked)
			if err := h.goOn(d.Restart()); err != nil {
				t.Fatalf("the process stopped at change %d of seed %d: %v", n, seed, err)
			}
		}
	}
}

// What an archive has told, after the process was killed, entries are trimmed for: a loss of power must not take it,
// nor what comes behind it.
func TestArchive_ACrashOfTheMachineAfterOneOfTheProcessLosesNothingThatWasFound(t *testing.T) {
	all := entries(t)
	for _, seed := range seeds() {
		for _, n := range changes(t, seed, all) {
			h, d, err := begin(t, seed, all, n)
			if !errors.Is(err, faultdisk.ErrKilled) {
				t.Fatalf("change %d: %v", n, err)
			}
			d = d.Restart()
			a, err := filearchive.OpenLayer(d, "cluster")
			if err == nil {
				h.archive = a
				err = errors.Join(h.check(a), h.run(n%3))
			}
			if err == nil {
				err = h.goOn(d.Crash(fates(nil)["nothing"]))
			}
			if err != nil {
				t.Fatalf("killed at change %d of seed %d: %v", n, seed, err)
			}
		}
	}
}

func TestArchive_WithoutRoomForAnyChangeLosesNothingAndGoesOn(t *testing.T) {
	all := entries(t)
	for _, seed := range seeds() {
		for _, n := range changes(t, seed, all) {
			h, d := newHistory(t, seed, all), faultdisk.New()
			d.FailAt(n, syscall.ENOSPC)
			a, err := filearchive.OpenLayer(d, "cluster")
			if err == nil {
				h.archive = a
				err = h.run(crashSteps)
			}
			if !errors.Is(err, syscall.ENOSPC) {
				t.Fatalf("no room from change %d on: %v", n, err)
			}
			d.FailAt(0, nil)
			ended := strings.Contains(err.Error(), "nothing is archived any more")
			if a != nil {
				if err := h.check(a); err != nil {
					t.Fatalf("no room at change %d of seed %d: %v", n, seed, err)
				}
			}
			if a != nil && !ended {
				if err := h.run(3); err != nil {
					t.Fatalf("no room at change %d of seed %d, and then some: %v", n, seed, err)
				}
			}
			if err := h.goOn(d.Restart()); err != nil {
				t.Fatalf("no room at change %d of seed %d, and opened again: %v", n, seed, err)
			}
		}
	}
}

func TestArchive_OnADiskThatTurnsReadOnlyIsReadAndNotOpenedAgain(t *testing.T) {
	all := entries(t)
	h, d, err := begin(t, 1, all, 0)
	if err != nil {
		t.Fatal(err)
	}
	d.Freeze()
	before := d.Contents()
	for range 2 {
		if err := h.run(1); !errors.Is(err, syscall.EROFS) {
			t.Errorf("archived: %v", err)
		}
	}
	clear(h.asked)
	if err := h.check(h.archive); err != nil {
		t.Error(err)
	}
	if _, err := filearchive.OpenLayer(d, "cluster"); !errors.Is(err, syscall.EROFS) {
		t.Errorf("opened: %v", err)
	}
	if !maps.EqualFunc(before, d.Contents(), slices.Equal) {
		t.Error("something has changed")
	}
	if err := h.goOn(d.Restart()); err != nil {
		t.Errorf("written again: %v", err)
	}
}

// A flipped bit is named when the archive is opened, or when it is read that was open; what is whole is told.
func TestArchive_AnyFlippedBitIsNamedAndChangesNothing(t *testing.T) {
	all := entries(t)
	h, d, err := begin(t, 1, all, 0)
	if err != nil {
		t.Fatal(err)
	}
	contents := d.Contents()
	for file := range contents {
		var offsets []int
		for at := range contents[file] {
			offsets = append(offsets, at)
		}
		for _, at := range testkit.Some(offsets, 13) {
			contents[file][at] ^= 1 << (at % 8)
			damaged := faultdisk.Of(contents)
			_, err := filearchive.OpenLayer(damaged, "cluster")
			if !errors.Is(err, events.ErrDamaged) || !strings.Contains(err.Error(), file+" at offset ") {
				t.Fatalf("bit %d at offset %d of %s: %v", at%8, at, file, err)
			}
			if !maps.EqualFunc(contents, damaged.Contents(), slices.Equal) {
				t.Fatalf("bit %d at offset %d of %s: something was changed", at%8, at, file)
			}
			d.Flip(file, at)
			if err := h.check(h.archive); at > 200 && (!errors.Is(err, events.ErrDamaged) || !strings.Contains(err.Error(), file)) {
				t.Fatalf("bit %d at offset %d of %s, while it is open: %v", at%8, at, file, err)
			}
			d.Flip(file, at)
			contents[file][at] ^= 1 << (at % 8)
		}
	}
}
