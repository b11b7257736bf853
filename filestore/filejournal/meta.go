package filejournal

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

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
}

// run is the content of the file run: how the last run on the directory ended, or that it has not.
type run struct {
	Boot    string `json:"boot"`  // of the machine, when the run began
	Clean   bool   `json:"clean"` // the run has ended, and the log ends as follows
	Segment uint64 `json:"segment,omitempty"`
	End     int64  `json:"end,omitempty"`
	Lost    string `json:"lost,omitempty"` // a loss that the store has not noted yet
}

var (
	// ErrFormat reports a directory whose files this program does not read: they are of another version, or none of
	// a journal.
	ErrFormat = errors.New("directory holds no journal that this program reads")
	// ErrDurability reports that a journal was created with another durability than was asked for.
	ErrDurability = errors.New("journal has another durability")
)

// readJSON reads a file of one value; false where there is none.
func readJSON(l disk.Layer, name string, into any) (bool, error) {
	data, err := disk.ReadAll(l, name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if err := json.Unmarshal(data, into); err != nil {
		return false, &DamagedError{name, 0, err.Error()}
	}
	return true, nil
}

func writeJSON(l disk.Layer, name string, value any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return disk.Replace(l, name, append(data, '\n'))
}

// readFormat checks that a directory holds a journal of this format, or nothing.
func readFormat(l disk.Layer, names []string, want Durability) (f format, fresh bool, err error) {
	there, err := readJSON(l, formatFile, &f)
	switch {
	case err != nil:
		return f, false, err
	case !there:
		for _, name := range names {
			if _, is := segmentNumber(name); is || isSnapshot(name) || name == runFile {
				return f, false, fmt.Errorf("%w: there is %s, and no file %s", ErrFormat, name, formatFile)
			}
		}
		if want == "" {
			want = Strict
		}
		return format{formatName, formatVersion, want}, true, nil
	case f.Format != formatName || f.Version != formatVersion:
		return f, false, fmt.Errorf("%w: it is of %q, version %d, and this program reads %q, version %d",
			ErrFormat, f.Format, f.Version, formatName, formatVersion)
	case f.Durability != Strict && f.Durability != Opportunistic:
		return f, false, fmt.Errorf("%w: its durability is %q", ErrFormat, f.Durability)
	case want != "" && want != f.Durability:
		return f, false, fmt.Errorf("%w: it was created %s, and %s is asked for", ErrDurability, f.Durability, want)
	}
	return f, false, nil
}
