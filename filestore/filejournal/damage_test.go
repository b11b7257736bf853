package filejournal_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"taskledger/events"
	"taskledger/filestore/filejournal"
	"taskledger/filestore/internal/faultdisk"
	"taskledger/filestore/internal/frame"
	"taskledger/filestore/journal"
	"taskledger/internal/testkit"
)

// whole makes a history and returns it with what is on the disk, after a clean end or after the process was killed.
func whole(t *testing.T, o filejournal.Options, clean bool) (*history, map[string][]byte) {
	t.Helper()
	h, d, err := begin(1, o, 0)
	if err != nil {
		t.Fatal(err)
	}
	if !clean {
		d.KillAt(1)
	}
	if err := h.journal.Close(); clean && err != nil {
		t.Fatal(err)
	}
	return h, d.Restart().Contents()
}

func sameContents(a, b map[string][]byte) bool {
	return maps.EqualFunc(a, b, func(a, b []byte) bool { return string(a) == string(b) })
}

// A flipped bit is told by the name of its file, or nothing that was answered is missing.
func TestDamage_OfAnyBitIsNamedAndChangesNothing(t *testing.T) {
	o := small(filejournal.Options{})
	for name, clean := range map[string]bool{"AfterACleanEnd": true, "AfterACrash": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, contents := whole(t, o, clean)
			for _, file := range slices.Sorted(maps.Keys(contents)) {
				for _, at := range testkit.Some(offsets(len(contents[file])), 31) {
					contents[file][at] ^= 1 << (at % 8)
					if err := h.survives(contents, file, o); err != nil {
						t.Fatalf("bit %d at offset %d of %s: %v", at%8, at, file, err)
					}
					contents[file][at] ^= 1 << (at % 8)
				}
			}
		})
	}
}

// A bit of the file run is told too where nothing is missing for it: that another boot of the machine is named, say.
func TestDamage_OfAnyBitOfTheFileRunIsNamed(t *testing.T) {
	o := small(filejournal.Options{})
	for _, clean := range []bool{true, false} {
		_, contents := whole(t, o, clean)
		is := contents["run"]
		for at := range is {
			for bit := range 8 {
				altered := maps.Clone(contents)
				altered["run"] = slices.Clone(is)
				altered["run"][at] ^= 1 << bit
				d := faultdisk.Of(altered)
				j, err := filejournal.OpenLayer(d, o)
				switch {
				case err == nil && !bytes.EqualFold(bytes.TrimSpace(altered["run"]), bytes.TrimSpace(is)):
					t.Errorf("bit %d at offset %d: %q is taken for %q", bit, at, altered["run"], is)
				case err != nil && !isNamed(err, "run"):
					t.Errorf("bit %d at offset %d: %v", bit, at, err)
				case err != nil && !sameContents(d.Contents(), altered):
					t.Errorf("bit %d at offset %d: something was changed", bit, at)
				}
				if err == nil {
					j.Close()
				}
			}
		}
	}
}

// A file run of before there was a checksum in it is read.
func TestOpen_ReadsAFileRunThatHasNoChecksum(t *testing.T) {
	files := goldenFiles(t)
	files["run"] = []byte(`{"boot":"a boot of the machine","clean":true,"segment":2,"end":280}` + "\n")
	j, err := filejournal.OpenLayer(faultdisk.Of(files), goldenOptions())
	if err != nil {
		t.Fatal(err)
	}
	j.Close()
}

func offsets(length int) (all []int) {
	for at := range length {
		all = append(all, at)
	}
	return all
}

// survives opens a journal one of whose files is damaged.
func (h *history) survives(contents map[string][]byte, file string, o filejournal.Options) error {
	d := faultdisk.Of(contents)
	j, err := filejournal.OpenLayer(d, o)
	if err != nil {
		refused := errors.Is(err, filejournal.ErrFormat) || errors.Is(err, filejournal.ErrDurability)
		if !isNamed(err, file) && !refused {
			return fmt.Errorf("it is not named: %w", err)
		}
		if !sameContents(d.Contents(), contents) {
			return errors.New("what is damaged was changed")
		}
		return nil
	}
	defer j.Close()
	if err := h.check(j, false); err != nil && !isNamed(err, file) {
		return err
	}
	return nil
}

// isNamed reports whether an error tells of damage in a file.
func isNamed(err error, file string) bool {
	return errors.Is(err, events.ErrDamaged) && strings.Contains(err.Error(), file)
}

func TestDamage_OfAFileThatIsMissingOrCutIsNamed(t *testing.T) {
	o := small(filejournal.Options{})
	_, contents := whole(t, o, true)
	var logs []string
	for name := range contents {
		if strings.HasPrefix(name, "log-") {
			logs = append(logs, name)
		}
	}
	slices.Sort(logs)
	if len(logs) < 3 {
		t.Fatalf("there are %d segments, too few to tell", len(logs))
	}
	last := logs[len(logs)-1]
	for name, alter := range map[string]func(map[string][]byte){
		"the last segment is missing":   func(c map[string][]byte) { delete(c, last) },
		"the last segment is cut":       func(c map[string][]byte) { c[last] = c[last][:len(c[last])-1] },
		"the last segment is longer":    func(c map[string][]byte) { c[last] = append(slices.Clone(c[last]), 0) },
		"an earlier segment is cut":     func(c map[string][]byte) { c[logs[1]] = c[logs[1]][:len(c[logs[1]])-1] },
		"an earlier segment is another": func(c map[string][]byte) { c[logs[1]] = c[logs[0]] },
		"the format is missing":         func(c map[string][]byte) { delete(c, "format") },
		"the end is not told":           func(c map[string][]byte) { delete(c, "run") },
	} {
		altered := maps.Clone(contents)
		alter(altered)
		d := faultdisk.Of(altered)
		_, err := filejournal.OpenLayer(d, o)
		told := isNamed(err, "log-") || errors.Is(err, filejournal.ErrFormat) && strings.Contains(err.Error(), "log-")
		if told = told || altered["run"] == nil && isNamed(err, "run"); !told {
			t.Errorf("%s: %v", name, err)
		}
		if !sameContents(d.Contents(), altered) {
			t.Errorf("%s: something was changed", name)
		}
	}
}

// What was synced before a record was written is there when the record is: so what stands before it is no torn write.
func TestDamage_OfZerosBeforeARecordThatKnewThemSyncedIsNoTornWrite(t *testing.T) {
	o := small(filejournal.Options{})
	o.SegmentBytes = 1 << 20
	_, contents := whole(t, o, false)
	log := contents["log-0000000000000001"]
	for at := 1024; at+512 <= len(log)-4096; at += 512 {
		altered := maps.Clone(contents)
		altered["log-0000000000000001"] = slices.Clone(log)
		clear(altered["log-0000000000000001"][at : at+512])
		if _, err := filejournal.OpenLayer(faultdisk.Of(altered), o); !errors.Is(err, events.ErrDamaged) {
			t.Fatalf("zeros at offset %d of %d: %v", at, len(log), err)
		}
	}
}

func TestFull_WritesFailAndLeaveNothingBehindAndGoOnWithRoom(t *testing.T) {
	for name, o := range durabilities() {
		for _, seed := range seeds() {
			h, d, err := begin(seed, o, 0)
			if err != nil {
				t.Fatal(err)
			}
			for free := int64(0); free < 3000; free += 97 {
				d.Room(d.Used() + free)
				for err = h.step(); err == nil; err = h.step() {
				}
				if !errors.Is(err, journal.ErrFull) {
					t.Fatalf("%s, %d bytes free: %v", name, free, err)
				}
				h.forget()
				if err := h.check(h.journal, false); err != nil {
					t.Fatalf("%s, %d bytes were free: %v", name, free, err)
				}
				d.Room(0)
			}
			if err := h.run(10); err != nil {
				t.Fatalf("with room again: %v", err)
			}
			d.KillAt(1)
			_ = h.journal.Close()
			if err := h.goOn(d.Restart(), o, false); err != nil {
				t.Fatalf("%s: after a crash: %v", name, err)
			}
		}
	}
}

// What was written before there was no more room may have reached the disk, and whole entries be among it: when power
// fails after they were refused, none of them is there.
func TestFull_NoEntryThatWasRefusedComesBackAfterACrashOfTheMachine(t *testing.T) {
	for name, o := range durabilities() {
		o.SegmentBytes = 1 << 20
		d := faultdisk.New()
		d.WriteAtOnce()
		j := filled(t, d, o, 1, 2)
		d.Room(d.Used() + 1000) // for two of three
		if err := j.AppendAll([]journal.Entry{long(3), long(4), long(5)}); !errors.Is(err, journal.ErrFull) {
			t.Fatalf("%s: without room: %v", name, err)
		}
		after := d.Crash(fates(nil)["nothing"])
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		o.Boot = "second"
		j, err := filejournal.OpenLayer(after, o)
		if err != nil {
			t.Fatal(err)
		}
		if is := left(t, j); is != 2 {
			t.Errorf("%s: %d entries are there, 2 were answered and 3 refused", name, is)
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// A cut that may not be durable is no end of what was refused: nobody knows what a crash leaves.
func TestFull_WhereWhatWasWrittenCannotBeCutDurablyNothingMoreIsWritten(t *testing.T) {
	for name, o := range durabilities() {
		d := faultdisk.New()
		j := filled(t, d, o, 1, 2)
		d.Room(d.Used() + 100)
		d.ForgetAt(1)
		for range 2 {
			if err := j.Append(long(3)); !errors.Is(err, syscall.EIO) || errors.Is(err, journal.ErrFull) {
				t.Errorf("%s: the cut cannot be synced: %v", name, err)
			}
			d.Room(0)
		}
		_ = j.Close()
	}
}

// forget takes back what was refused: nothing is left of it.
func (h *history) forget() {
	for shard, n := range h.answered {
		h.asked[shard] = h.asked[shard][:n]
	}
	for shard := range h.asked {
		h.asked[shard] = h.asked[shard][:h.answered[shard]]
	}
	clear(h.writing)
}

func TestFrozen_WritesFailAndReadsDoNot(t *testing.T) {
	for name, o := range durabilities() {
		h, d, err := begin(1, o, 0)
		if err != nil {
			t.Fatal(err)
		}
		d.Freeze()
		var first error
		for range 3 {
			err := h.step()
			if !errors.Is(err, syscall.EROFS) || errors.Is(err, journal.ErrFull) {
				t.Fatalf("%s: written on a disk that can be read alone: %v", name, err)
			}
			if first == nil {
				first = err
			}
			h.forget()
		}
		if !strings.Contains(first.Error(), "nothing is written any more") {
			t.Errorf("%s: it does not say that it has ended: %v", name, first)
		}
		for shard := range shards {
			for e, err := range h.journal.Read(shard, h.first[shard]) {
				if err != nil {
					t.Errorf("%s: read entry %d: %v", name, e.Number, err)
				}
			}
		}
		contents := d.Contents()
		if _, err := filejournal.OpenLayer(d, o); !errors.Is(err, syscall.EROFS) || !sameContents(contents, d.Contents()) {
			t.Errorf("%s: opened on a disk that can be read alone: %v", name, err)
		}
		_ = h.journal.Close()
	}
}

// thinned makes a journal of which a snapshot in slot 1 needs the last entries of shard 0 alone, and one in slot 0 a
// few more, so that segments have gone. It returns the open journal.
func thinned(t *testing.T, d *faultdisk.Disk) *filejournal.Journal {
	t.Helper()
	o := small(filejournal.Options{})
	o.SegmentBytes = 1000
	j, err := filejournal.OpenLayer(d, o)
	if err != nil {
		t.Fatal(err)
	}
	for n := uint64(1); n <= 30; n++ {
		if err := j.Append(journal.Entry{Number: n, Revision: int64(n), Data: make([]byte, 300)}); err != nil {
			t.Fatal(err)
		}
	}
	for slot, first := range []uint64{5, 25} {
		if err := j.WriteSnapshot(journal.Key{Slot: slot}, journal.Snapshot{First: first}); err != nil {
			t.Fatal(err)
		}
	}
	return j
}

// Entries are missing where a snapshot says that they may go which cannot be read: that is what is damaged.
func TestDamage_OfASnapshotThatSaysWhichEntriesMayGoNamesTheSnapshot(t *testing.T) {
	d := faultdisk.New()
	if err := thinned(t, d).Close(); err != nil {
		t.Fatal(err)
	}
	for at := range 80 {
		d.Flip("snapshot-0-1", at)
		_, err := filejournal.OpenLayer(d, small(filejournal.Options{}))
		if !isNamed(err, "snapshot-0-1") {
			t.Fatalf("bit at offset %d: %v", at, err)
		}
		d.Flip("snapshot-0-1", at)
	}
	j, err := filejournal.OpenLayer(d, small(filejournal.Options{}))
	if err != nil {
		t.Fatal(err)
	}
	_ = j.Close()
}

// A full disk gets room from a snapshot, though there is none to write anew what is left of a segment.
func TestFull_ASnapshotRemovesSegmentsThoughNoneCanBeWrittenAnew(t *testing.T) {
	d := faultdisk.New()
	j := thinned(t, d)
	defer j.Close()
	for n := uint64(31); n <= 33; n++ {
		e := journal.Entry{Number: n, Revision: int64(n), Data: make([]byte, 3000)}
		if err := j.Append(e); err != nil {
			t.Fatal(err)
		}
		e = journal.Entry{Shard: 1, Number: n - 30, Revision: int64(n), Data: make([]byte, 200)} // it keeps a segment
		if err := j.Append(e); err != nil {
			t.Fatal(err)
		}
	}
	used := d.Used()
	d.Room(used + 100)
	for slot := range 2 {
		if err := j.WriteSnapshot(journal.Key{Slot: slot}, journal.Snapshot{First: 33}); err != nil {
			t.Fatalf("slot %d: %v", slot, err)
		}
	}
	if now := d.Used(); now > used-1000 {
		t.Errorf("%d bytes are in use, %d were", now, used)
	}
}

// Entries that no snapshot lets go are missing: a shard without any snapshot is not taken for a new one.
func TestDamage_OfASegmentThatIsMissingOfAShardWithoutSnapshotIsNamed(t *testing.T) {
	for name, clean := range map[string]bool{"after a clean end": true, "after a crash": false} {
		d := faultdisk.New()
		o := filejournal.Options{SegmentBytes: 2000, Boot: "first"}
		j, err := filejournal.OpenLayer(d, o)
		if err != nil {
			t.Fatal(err)
		}
		for n := uint64(1); n <= 40; n++ {
			if err := j.Append(long(n)); err != nil {
				t.Fatal(err)
			}
		}
		if !clean {
			d.KillAt(1)
		}
		if err := j.Close(); clean && err != nil {
			t.Fatal(err)
		}
		contents := d.Restart().Contents()
		var logs []string
		for name := range contents {
			if strings.HasPrefix(name, "log-") {
				logs = append(logs, name)
			}
		}
		slices.Sort(logs)
		last := len(logs) - 1
		for _, missing := range [][]string{logs[:1], logs[1:2], logs[last-1 : last], logs[:last], logs[last:], logs} {
			altered := maps.Clone(contents)
			for _, name := range missing {
				delete(altered, name)
			}
			for how, open := range map[string]func(*faultdisk.Disk) error{
				"to write": func(d *faultdisk.Disk) error {
					_, err := filejournal.OpenLayer(d, o)
					return err
				},
				"to read": func(d *faultdisk.Disk) error {
					_, err := filejournal.OpenLayerToRead(d)
					return err
				},
			} {
				d := faultdisk.Of(altered)
				if err := open(d); !isNamed(err, "log-") {
					t.Errorf("%s, without %v, opened %s: %v", name, missing, how, err)
				}
				if !sameContents(d.Contents(), altered) {
					t.Errorf("%s, without %v, opened %s: something was changed", name, missing, how)
				}
			}
		}
	}
}

func TestAppend_OfAnEntryThatDoesNotFollowWritesNothingAndOthersGoOn(t *testing.T) {
	d := faultdisk.New()
	o := filejournal.Options{Boot: "first"}
	j, err := filejournal.OpenLayer(d, o)
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Append(long(2)); err == nil {
		t.Error("a shard begins with entry 2")
	}
	if err := j.AppendAll([]journal.Entry{long(1), long(2), long(4), long(5)}); err == nil {
		t.Error("entry 4 follows entry 2")
	}
	for _, wrong := range []uint64{0, 1, 2, 4, 100} {
		before := d.Changes()
		err := j.Append(long(wrong))
		if err == nil || !strings.Contains(err.Error(), "entry 3 is due") || d.Changes() != before {
			t.Errorf("entry %d after entry 2: %v", wrong, err)
		}
	}
	if err := j.WriteSnapshot(journal.Key{}, journal.Snapshot{First: 3}); err != nil {
		t.Fatal(err)
	}
	if err := j.Append(long(4)); err == nil {
		t.Error("entry 4 follows entry 2, of which nobody needs any more")
	}
	if err := j.Append(long(3)); err != nil {
		t.Error(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if j, err = filejournal.OpenLayer(d, o); err != nil {
		t.Fatal(err)
	}
	for e, err := range j.Read(0, 3) {
		if err != nil || e.Number != 3 {
			t.Errorf("read entry %d, %v", e.Number, err)
		}
	}
	if err := j.Close(); err != nil {
		t.Error(err)
	}
}

// Each segment but the last one may hold the last entries of a shard: so the next one tells what was there before it.
func TestDamage_OfASegmentThatIsMissingIsNamedThoughNoEntryOfItsShardsFollows(t *testing.T) {
	d := faultdisk.New()
	j, err := filejournal.OpenLayer(d, filejournal.Options{SegmentBytes: 2000, Boot: "first"})
	if err != nil {
		t.Fatal(err)
	}
	for shard := range 4 { // a segment has five entries, so each shard lies in one of its own
		for number := uint64(1); number <= 5; number++ {
			e := long(number)
			e.Shard = shard
			if err := j.Append(e); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	segments := 0
	for name, content := range d.Contents() {
		if !strings.HasPrefix(name, "log-") {
			continue
		}
		segments++
		alter := map[string]func(map[string][]byte){
			"missing": func(c map[string][]byte) { delete(c, name) },
			"cut at the end of a record": func(c map[string][]byte) {
				c[name] = content[:len(content)-recordOf(t, long(5))]
			},
		}
		for what, alter := range alter {
			altered := d.Contents()
			alter(altered)
			after := faultdisk.Of(altered)
			if _, err := filejournal.OpenLayer(after, filejournal.Options{Boot: "first"}); !isNamed(err, "log-") {
				t.Errorf("%s is %s: %v", name, what, err)
			}
			if !sameContents(after.Contents(), altered) {
				t.Errorf("%s is %s: something was changed", name, what)
			}
		}
	}
	if segments < 4 {
		t.Errorf("there are %d segments, too few to tell", segments)
	}
}

// The file run tells of the last segment what was synced before that was written: what is missing of it is no torn
// write.
func TestDamage_OfTheLastSegmentBeforeWhatWasSyncedWhenItBeganIsNoTornWrite(t *testing.T) {
	for _, durability := range []filejournal.Durability{filejournal.Strict, filejournal.Opportunistic} {
		for name, c := range map[string]struct {
			before, after uint64 // entries, before the journal is opened again and afterwards
			synced        int    // entries in the last segment
		}{
			"the run began with it":         {3, 1, 3},
			"the run began with it alone":   {3, 0, 3},
			"it was begun by a long run":    {4, 3, 0},
			"it was begun by the first run": {0, 0, 0},
		} {
			o := filejournal.Options{Durability: durability, Lag: time.Hour, SegmentBytes: 2000, Boot: "first"}
			if durability == filejournal.Strict {
				o.Lag = 0
			}
			d := faultdisk.New()
			j := filled(t, d, o, 1, c.before)
			if err := j.Close(); err != nil {
				t.Fatal(err)
			}
			j = filled(t, d, o, c.before+1, c.before+c.after)
			crashed := d.Contents()
			if err := j.Close(); err != nil {
				t.Fatal(err)
			}
			last := slices.Max(slices.Collect(maps.Keys(segments(crashed))))
			first, err := filejournal.Begun(crashed[last])
			if err != nil {
				t.Fatal(err)
			}
			synced := first + c.synced*recordOf(t, long(1))
			for size := range len(crashed[last]) {
				altered := maps.Clone(crashed)
				altered[last] = crashed[last][:size]
				after := faultdisk.Of(altered)
				j, err := filejournal.OpenLayer(after, o)
				switch {
				case size < synced && !isNamed(err, last):
					t.Errorf("%s, %s: %s has %d of %d synced bytes: %v", durability, name, last, size, synced, err)
				case size < synced && !sameContents(after.Contents(), altered):
					t.Errorf("%s, %s: something was changed", durability, name)
				case size >= synced && err != nil:
					t.Errorf("%s, %s: %s has %d bytes, and %d were synced: %v", durability, name, last, size, synced, err)
				}
				if err == nil {
					if err := j.Close(); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
	}
}

// filled opens a journal and appends entries of shard 0.
func filled(t *testing.T, d *faultdisk.Disk, o filejournal.Options, from, to uint64) *filejournal.Journal {
	t.Helper()
	j, err := filejournal.OpenLayer(d, o)
	if err != nil {
		t.Fatal(err)
	}
	for number := from; number <= to; number++ {
		if err := j.Append(long(number)); err != nil {
			t.Fatal(err)
		}
	}
	return j
}

// segments returns the segments among files.
func segments(files map[string][]byte) map[string][]byte {
	some := map[string][]byte{}
	for name, content := range files {
		if strings.HasPrefix(name, "log-") {
			some[name] = content
		}
	}
	return some
}

// recordOf returns the length of the record of an entry.
func recordOf(t *testing.T, e journal.Entry) int {
	t.Helper()
	record, err := frame.Append(nil, 0, frame.Frame{Number: e.Number, Revision: e.Revision, Data: e.Data})
	if err != nil {
		t.Fatal(err)
	}
	return len(record)
}
