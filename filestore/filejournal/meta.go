package filejournal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"time"

	"taskledger/filestore/internal/disk"
)

// Durability says when an entry is answered.
type Durability string

const (
	// Strict answers an entry once it is synced: neither a crash of the process nor one of the machine loses it.
	Strict Durability = "strict"
	// Opportunistic answers an entry once it is written: a crash of the process loses nothing, one of the machine
	// what was written within the Lag before it.
	Opportunistic Durability = "opportunistic"
)

const (
	formatName    = "taskledger journal"
	formatVersion = 1
)

// format is the content of the file format, which is written once.
type format struct {
	Format     string     `json:"format"`
	Version    int        `json:"version"`
	Durability Durability `json:"durability"`
	LagMs      int64      `json:"lag_ms,omitempty"` // of an opportunistic one; 0 = 1 s, as of before it was written
}

// lag returns how long an opportunistic journal may leave an entry that was answered without a sync.
func (f *format) lag() time.Duration {
	if f.LagMs == 0 {
		return defaultLag
	}
	return time.Duration(f.LagMs) * time.Millisecond
}

// run is the content of the file run: how the last run on the directory ended, or that it has not.
type run struct {
	Boot    string `json:"boot"`              // of the machine, when the run began
	Clean   bool   `json:"clean"`             // the run has ended, and the log ends as follows
	Segment uint64 `json:"segment,omitempty"` // the last one that was begun; 0 = not known
	End     int64  `json:"end,omitempty"`     // what Segment has at least, synced; all that it has where Clean is set
	Lost    string `json:"lost,omitempty"`    // a loss that the store has not noted yet
	Sum     uint32 `json:"sum,omitempty"`     // CRC-32C of the rest, as JSON; 0 = none, in a file of before there was one

	missing bool // there is no such file
}

// Why entries may be lost though the machine went on.
const (
	failedSync  = "a sync of the journal failed, and answered entries may be missing"
	lostSectors = "the system did not write what the journal had written, and answered entries are missing"
)

var (
	// ErrFormat reports a directory whose files this program does not read: they are of another version, or none of
	// a journal.
	ErrFormat = errors.New("directory holds no journal that this program reads")
	// ErrDurability reports that a journal was created with another durability than was asked for.
	ErrDurability = errors.New("journal has another durability")
)

// readRun reads the file run, which may be missing.
func readRun(l disk.Layer) (*run, error) {
	data, err := disk.ReadAll(l, runFile)
	if errors.Is(err, fs.ErrNotExist) {
		return &run{missing: true}, nil
	}
	if err != nil {
		return nil, err
	}
	last := &run{}
	if err := decode(runFile, data, last); err != nil {
		return nil, err
	}
	if last.Sum != 0 && last.Sum != last.sum() {
		return nil, &DamagedError{runFile, 0, "the checksum is of something else"}
	}
	return last, nil
}

// sum returns what Sum is to be.
func (r run) sum() uint32 {
	r.Sum = 0
	data, err := json.Marshal(r)
	if err != nil {
		return 0 // which no value of a run brings about
	}
	return crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli))
}

// writeRun replaces the file run.
func writeRun(l disk.Layer, r run) error {
	r.Sum = r.sum()
	return writeJSON(l, runFile, r)
}

// decode reads the value of a file. A field with another name is damage: it would be passed over with what it tells.
func decode(name string, data []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return &DamagedError{name, d.InputOffset(), err.Error()}
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return &DamagedError{name, d.InputOffset(), "something follows"}
	}
	return nil
}

func writeJSON(l disk.Layer, name string, value any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return disk.Replace(l, name, append(data, '\n'))
}

// readFormat checks that a directory holds a journal of this format and of what is asked for, or nothing.
func readFormat(l disk.Layer, names []string, want Options) (f format, fresh bool, err error) {
	data, err := disk.ReadAll(l, formatFile)
	if errors.Is(err, fs.ErrNotExist) {
		for _, name := range names {
			if _, is := segmentNumber(name); is || isSnapshot(name) || name == runFile {
				return f, false, fmt.Errorf("%w: there is %s, and no file %s", ErrFormat, name, formatFile)
			}
		}
		f, err = want.format()
		return f, true, err
	}
	if err != nil {
		return f, false, err
	}
	var is struct{ Format, Version any } // the fields that every version has
	if err := json.Unmarshal(data, &is); err != nil {
		return f, false, &DamagedError{formatFile, 0, err.Error()}
	}
	if fmt.Sprint(is.Format, is.Version) == fmt.Sprint(formatName, formatVersion) {
		if err := decode(formatFile, data, &f); err != nil {
			return f, false, err
		}
	}
	switch {
	case f.Format != formatName || f.Version != formatVersion:
		return f, false, fmt.Errorf("%w: file %s is of %v, version %v, and this program reads %s, version %d",
			ErrFormat, formatFile, is.Format, is.Version, formatName, formatVersion)
	case f.Durability != Strict && f.Durability != Opportunistic:
		return f, false, fmt.Errorf("%w: in file %s the durability is %q", ErrFormat, formatFile, f.Durability)
	case want.Durability != "" && want.Durability != f.Durability:
		return f, false, fmt.Errorf("%w: it was created %s, and %s is asked for",
			ErrDurability, f.Durability, want.Durability)
	case f.LagMs < 0 || f.LagMs > 0 && f.Durability == Strict:
		return f, false, &DamagedError{formatFile, 0, fmt.Sprintf("a %s journal loses %d ms", f.Durability, f.LagMs)}
	}
	return f, false, want.fits(f)
}
