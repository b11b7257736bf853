package filelogs_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"

	"taskledger/events"
	"taskledger/filestore/filelogs"
	"taskledger/filestore/internal/faultdisk"
	"taskledger/internal/testkit"
	"taskledger/tasklog"
	"taskledger/tasklog/tasklogtest"
)

// logged appends lines to a log that stays, among others that are forgotten, and remembers what was answered.
type logged struct {
	t         *testing.T
	logs      *filelogs.Logs
	end       tasklog.End
	life      events.Ref // of the last log that was begun
	forgotten uint64     // a bit for each life of which that was answered
}

var tiny = filelogs.Config{MaxBytes: filelogs.MinBytes}

// open opens the logs of a disk.
func (h *logged) open(d *faultdisk.Disk) (err error) {
	h.logs, err = filelogs.OpenLayer(d, tiny)
	return err
}

// run goes on with so many lives until the logs fail.
func (h *logged) run(lives int) error {
	for range lives {
		end, err := h.logs.Append(h.t.Context(), one, h.end, tasklogtest.Lines(h.end.Line+1, 1))
		if err != nil {
			return err
		}
		h.end, h.life = end, h.life+1
		var short tasklog.End
		for range 3 {
			at := tasklog.Attempt{Shard: 1, Life: h.life, Number: 1}
			if short, err = h.logs.Append(h.t.Context(), at, short, large(short.Line+1)); err != nil {
				return err
			}
		}
		if err = h.logs.Forget(h.t.Context(), 1, h.life, 0); err != nil {
			return err
		}
		h.forgotten |= 1 << h.life
	}
	return nil
}

// check compares the logs with what was answered, and takes a line that is there for answered.
func (h *logged) check() error {
	var next uint64 = 1
	for more := true; more; {
		got, err := h.logs.Read(h.t.Context(), one, tasklog.Range{From: next})
		if err != nil {
			return err
		}
		for _, b := range got.Batches {
			if b.First != next || !slices.Equal(b.Lines, tasklogtest.Lines(next, 1).Lines) {
				return fmt.Errorf("line %d is there where line %d is due", b.First, next)
			}
			next++
		}
		more = got.More
	}
	if last := next - 1; last < h.end.Line || last > h.end.Line+1 {
		return fmt.Errorf("the log ends with line %d, and %d were answered", last, h.end.Line)
	}
	lives, _, err := h.logs.Lives(h.t.Context(), 1, 0)
	for _, life := range lives {
		if h.forgotten&(1<<life) != 0 {
			return fmt.Errorf("life %d is back", life)
		}
	}
	return err
}

// goOn opens the logs of a disk, checks them, and writes some more, which must be there when they are opened again.
func (h *logged) goOn(d *faultdisk.Disk) error {
	if err := h.open(d); err != nil {
		return fmt.Errorf("open: %w", err)
	}
	if err := errors.Join(h.check(), h.settle(), h.run(4), h.logs.Close()); err != nil {
		return err
	}
	if err := h.open(d); err != nil {
		return fmt.Errorf("open again: %w", err)
	}
	return errors.Join(h.check(), h.logs.Close())
}

// settle asks again for the line of which no answer came: it must be there once.
func (h *logged) settle() error {
	end, err := h.logs.Append(h.t.Context(), one, h.end, tasklogtest.Lines(h.end.Line+1, 1))
	if err == nil {
		h.end = end
	}
	return err
}

const crashLives = 12

// begin writes on a new disk, which is killed at its nth change, 0 = never.
func begin(t *testing.T, n int) (*logged, *faultdisk.Disk, error) {
	t.Helper()
	h, d := &logged{t: t}, faultdisk.New()
	if n > 0 {
		d.KillAt(n)
	}
	if err := h.open(d); err != nil {
		return h, d, err
	}
	return h, d, h.run(crashLives)
}

// changes returns those of a whole history.
func changes(t *testing.T, nth int) (all []int) {
	t.Helper()
	h, d, err := begin(t, 0)
	if err == nil {
		err = h.check()
	}
	if err != nil {
		t.Fatal(err)
	}
	for n := range d.Changes() {
		all = append(all, n+1)
	}
	if len(all) < 100 {
		t.Errorf("%d changes only", len(all))
	}
	return testkit.Some(all, nth)
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

func TestLogs_ACrashAtAnyChangeLosesNothingThatWasAcknowledged(t *testing.T) {
	for _, n := range changes(t, 9) {
		h, d, err := begin(t, n)
		if !errors.Is(err, faultdisk.ErrKilled) {
			t.Fatalf("change %d: %v", n, err)
		}
		before := *h
		for fate := range fates(nil) {
			*h = before
			if err := h.goOn(d.Crash(fates(rand.New(rand.NewPCG(1, uint64(n))))[fate])); err != nil {
				t.Fatalf("the machine stopped at change %d, keeping %s: %v", n, fate, err)
			}
		}
		*h = before
		if err := h.goOn(d.Restart()); err != nil {
			t.Fatalf("the process stopped at change %d: %v", n, err)
		}
	}
}

// What was found after the process was killed, and what comes behind it, a loss of power must not take.
func TestLogs_ACrashOfTheMachineAfterOneOfTheProcessLosesNothingThatWasFound(t *testing.T) {
	for _, n := range changes(t, 4) {
		h, d, err := begin(t, n)
		if !errors.Is(err, faultdisk.ErrKilled) {
			t.Fatalf("change %d: %v", n, err)
		}
		d = d.Restart()
		if err = h.open(d); err == nil {
			err = errors.Join(h.check(), h.settle())
		}
		if err == nil {
			err = h.goOn(d.Crash(fates(nil)["nothing"]))
		}
		if err != nil {
			t.Fatalf("killed at change %d: %v", n, err)
		}
	}
}

func TestLogs_WithoutRoomForAnyChangeLoseNothingAndGoOn(t *testing.T) {
	for _, n := range changes(t, 2) {
		h, d := &logged{t: t}, faultdisk.New()
		d.FailAt(n, syscall.ENOSPC)
		opened := h.open(d)
		err := opened
		if opened == nil {
			err = h.run(crashLives)
		}
		if err == nil { // what makes room did not find any: that is tried again
			err = h.settle()
		}
		if !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("no room from change %d on: %v", n, err)
		}
		d.FailAt(0, nil)
		if opened == nil {
			if err := h.check(); err != nil {
				t.Fatalf("no room at change %d: %v", n, err)
			}
			if err := h.settle(); err != nil && !strings.Contains(err.Error(), "no log is written any more") {
				t.Fatalf("no room at change %d, and then some: %v", n, err)
			}
		}
		if err := h.goOn(d.Restart()); err != nil {
			t.Fatalf("no room at change %d, and opened again: %v", n, err)
		}
	}
}

func TestLogs_OnADiskThatTurnsReadOnlyAreReadAndNotOpenedAgain(t *testing.T) {
	h, d, err := begin(t, 0)
	if err != nil {
		t.Fatal(err)
	}
	d.Freeze()
	before := d.Contents()
	for range 2 {
		if err := h.run(1); !errors.Is(err, syscall.EROFS) {
			t.Errorf("written: %v", err)
		}
	}
	if err := h.check(); err != nil {
		t.Error(err)
	}
	again := &logged{t: t}
	if err := again.open(d); !errors.Is(err, syscall.EROFS) {
		t.Errorf("opened: %v", err)
	}
	if !maps.EqualFunc(before, d.Contents(), slices.Equal) {
		t.Error("something has changed")
	}
	if err := h.goOn(d.Restart()); err != nil {
		t.Errorf("written again: %v", err)
	}
}

func TestOpen_NamesAnyFlippedBitAndChangesNothing(t *testing.T) {
	_, d, err := begin(t, 0)
	if err != nil {
		t.Fatal(err)
	}
	contents := d.Contents()
	if len(contents) < 2 {
		t.Fatalf("%d files, too few to tell", len(contents))
	}
	for file := range contents {
		var offsets []int
		for at := range contents[file] {
			offsets = append(offsets, at)
		}
		nth := max(1, len(offsets)/100)
		if testkit.Whole() { // one text has most of the bytes
			nth = max(1, len(offsets)/2000)
		}
		for i := 0; i < len(offsets); i += nth {
			at := offsets[i]
			contents[file][at] ^= 1 << (i % 8)
			damaged := faultdisk.Of(contents)
			_, err := filelogs.OpenLayer(damaged, tiny)
			if !errors.Is(err, events.ErrDamaged) || !strings.Contains(err.Error(), file+" at offset ") {
				t.Fatalf("bit %d at offset %d of %s: %v", i%8, at, file, err)
			}
			if !maps.EqualFunc(contents, damaged.Contents(), slices.Equal) {
				t.Fatalf("bit %d at offset %d of %s: something was changed", i%8, at, file)
			}
			contents[file][at] ^= 1 << (i % 8)
		}
	}
}
