package filejournal_test

import (
	"bytes"
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"taskledger/filestore/filejournal"
	"taskledger/filestore/internal/faultdisk"
	"taskledger/filestore/journal"
)

var update = flag.Bool("update", false, "write golden files that are missing; existing ones are never changed")

// golden is where the files of one journal lie, as this format has them for ever.
var golden = filepath.Join("testdata", "golden")

// goldenEntries are the entries of shard 2 in them. One has sectors of zeros.
func goldenEntries() (all []journal.Entry) {
	for i, data := range [][]byte{[]byte("one"), make([]byte, 1200), []byte("three"), []byte("four")} {
		all = append(all, journal.Entry{
			Shard:    2,
			Number:   uint64(i) + 1,
			Revision: int64(i)*7 + 1,
			Data:     data,
		})
	}
	return all
}

func goldenOptions() filejournal.Options {
	return filejournal.Options{Boot: "a boot of the machine", SegmentBytes: 1400}
}

// goldenFiles makes the files anew.
func goldenFiles(t *testing.T) map[string][]byte {
	t.Helper()
	d := faultdisk.New()
	j, err := filejournal.OpenLayer(d, goldenOptions())
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range goldenEntries() {
		if err := j.Append(e); err != nil {
			t.Fatal(err)
		}
	}
	for k, s := range map[journal.Key]journal.Snapshot{
		{Shard: 2, Slot: 1}:    {First: 2, Parts: [][]byte{[]byte("state"), nil}},
		{Shard: journal.Notes}: {Parts: [][]byte{[]byte("notes")}},
		{Shard: 255, Slot: 2}:  {},
	} {
		if err := j.WriteSnapshot(k, s); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	return d.Contents()
}

func TestGolden_TheFilesAreThoseOfTheFormat(t *testing.T) {
	files := goldenFiles(t)
	if _, err := os.Stat(golden); *update && errors.Is(err, fs.ErrNotExist) {
		if err := os.MkdirAll(golden, 0o755); err != nil {
			t.Fatal(err)
		}
		for name, data := range files {
			if err := os.WriteFile(filepath.Join(golden, name), data, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	there, err := os.ReadDir(golden)
	if err != nil {
		t.Fatal(err)
	}
	if len(there) != len(files) {
		t.Errorf("%d files are written, want %d", len(files), len(there))
	}
	for _, e := range there {
		want, err := os.ReadFile(filepath.Join(golden, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(files[e.Name()], want) {
			t.Errorf("%s has other bytes", e.Name())
		}
	}
}

func TestGolden_TheFilesAreRead(t *testing.T) {
	d := map[string][]byte{}
	there, err := os.ReadDir(golden)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range there {
		if d[e.Name()], err = os.ReadFile(filepath.Join(golden, e.Name())); err != nil {
			t.Fatal(err)
		}
	}
	j, err := filejournal.OpenLayer(faultdisk.Of(d), goldenOptions())
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	want := goldenEntries()[1:]
	for e, err := range j.Read(2, 2) {
		if err != nil || len(want) == 0 {
			t.Fatalf("entry %+v, %v", e, err)
		}
		if e.Number != want[0].Number || e.Revision != want[0].Revision || !bytes.Equal(e.Data, want[0].Data) {
			t.Errorf("entry %d of revision %d has %d bytes", e.Number, e.Revision, len(e.Data))
		}
		want = want[1:]
	}
	if len(want) > 0 {
		t.Errorf("%d entries are missing", len(want))
	}
	s, err := j.ReadSnapshot(journal.Key{Shard: 2, Slot: 1})
	if err != nil || !sameSnapshot(s, journal.Snapshot{First: 2, Parts: [][]byte{[]byte("state"), nil}}) {
		t.Errorf("the snapshot is %+v, %v", s, err)
	}
}

func TestOpen_RefusesAnotherFormatAndAnotherDurability(t *testing.T) {
	files := goldenFiles(t)
	for format, want := range map[string]error{
		`{"format":"taskledger journal","version":2,"durability":"strict"}`:        filejournal.ErrFormat,
		`{"format":"something else","version":1,"durability":"strict"}`:            filejournal.ErrFormat,
		`{"format":"taskledger journal","version":1,"durability":"perhaps"}`:       filejournal.ErrFormat,
		`{"format":"taskledger journal","version":1,"durability":"opportunistic"}`: filejournal.ErrDurability,
	} {
		files["format"] = []byte(format)
		d := faultdisk.Of(files)
		o := goldenOptions()
		o.Durability = filejournal.Strict
		if _, err := filejournal.OpenLayer(d, o); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", format, err, want)
		}
		if !sameContents(d.Contents(), files) {
			t.Errorf("%s: something was changed", format)
		}
	}
}

// The bound of a loss is chosen with the durability: whoever opens the journal later has it without asking for it.
func TestOpen_KeepsTheLagOfTheDirectory(t *testing.T) {
	open := func(d *faultdisk.Disk, durability filejournal.Durability, lag time.Duration) error {
		j, err := filejournal.OpenLayer(d, filejournal.Options{Durability: durability, Lag: lag, Boot: "boot"})
		if err == nil {
			err = j.Close()
		}
		return err
	}
	short := faultdisk.New()
	if err := open(short, filejournal.Opportunistic, 100*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	usual, strict := faultdisk.New(), faultdisk.New()
	if err := errors.Join(open(usual, filejournal.Opportunistic, 0), open(strict, "", 0)); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		d    *faultdisk.Disk
		lag  time.Duration
		says string // "" = it is opened
	}{
		{short, 0, ""},
		{short, 100 * time.Millisecond, ""},
		{short, time.Second, "it may lose 100ms, and 1s is asked for"},
		{usual, 0, ""},
		{usual, time.Second, ""},
		{usual, 100 * time.Millisecond, "it may lose 1s, and 100ms is asked for"},
		{strict, time.Second, "it is strict"},
		{faultdisk.New(), time.Second, "it is strict"},
	} {
		was := row.d.Contents()
		err := open(row.d, "", row.lag)
		switch {
		case row.says == "" && err != nil:
			t.Errorf("a lag of %s: %v", row.lag, err)
		case row.says == "":
		case !errors.Is(err, filejournal.ErrDurability) || !strings.Contains(err.Error(), row.says):
			t.Errorf("a lag of %s: %v, want %s", row.lag, err, row.says)
		case !sameContents(row.d.Contents(), was):
			t.Errorf("a lag of %s is refused, and something was changed", row.lag)
		}
	}
	if got := string(short.Contents()["format"]); !strings.Contains(got, `"lag_ms":100`) {
		t.Errorf("the format is %s", got)
	}
}
