// Package exportform reads and writes the lines of an export, whose form the comment of package ledger specifies.
package exportform

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"taskledger/events"
)

// The first values of the first line.
const (
	Format  = "taskledger export"
	Version = 3
)

// MaxLine bounds a line: an entry of events.MaxEntryBytes, excerpts with as many digests, base64.
const MaxLine = 8 * events.MaxEntryBytes

// Header is the first line.
type Header struct {
	Format  string        `json:"format"`
	Version int           `json:"version"`
	Cluster string        `json:"cluster"`
	Shard   int           `json:"shard"`
	Task    events.TaskID `json:"task,omitempty"`
	From    uint64        `json:"from"`
	Prev    events.Hash   `json:"prev"`
}

// Line is any other line; the fields that it has tell which.
type Line struct {
	Entry []byte `json:"entry,omitempty"`

	Head    []byte  `json:"head,omitempty"`
	Digests Hashes  `json:"digests,omitempty"`
	Origins Origins `json:"origins,omitempty"`
	Shown   Shown   `json:"shown,omitempty"`

	Link *events.Hash `json:"link,omitempty"`

	End        uint64       `json:"end,omitempty"`
	Hash       *events.Hash `json:"hash,omitempty"`
	Checkpoint string       `json:"checkpoint,omitempty"`
}

// AsWritten reports whether text is exactly what an export writes for the line that was read from it. JSON and base64
// allow other texts of the same meaning, and names without one.
func AsWritten(line any, text []byte) bool {
	again, err := json.Marshal(line)
	return err == nil && bytes.Equal(again, text)
}

// Parse reads a line, and refuses one that is not as it was written.
func Parse(text []byte, line any) error {
	if err := json.Unmarshal(text, line); err != nil {
		return err
	}
	if !AsWritten(line, text) {
		return errors.New("the line is not as it was written")
	}
	return nil
}

// Origins and Shown hold the parts of an entry that an excerpt shows.
type (
	Origins []events.ShownOrigin
	Shown   []events.Shown
)

// maxShown bounds the origins or events of an entry: each takes 8 bytes there at least.
const maxShown = events.MaxEntryBytes / 8

// UnmarshalJSON reads no more than an entry holds.
func (all *Origins) UnmarshalJSON(text []byte) error {
	return unmarshalShown(text, (*[]events.ShownOrigin)(all))
}

// UnmarshalJSON reads no more than an entry holds.
func (all *Shown) UnmarshalJSON(text []byte) error {
	return unmarshalShown(text, (*[]events.Shown)(all))
}

func unmarshalShown(text []byte, all any) error {
	if n := bytes.Count(text, []byte{'{'}); n > maxShown ||
		bytes.Count(text, []byte{','}) >= 3*max(n, 1) { // each has three fields
		return errors.New("more than an entry holds")
	}
	return json.Unmarshal(text, all)
}

// Hashes holds hashes that are written one after the other, as bytes in base64.
type Hashes []events.Hash

// MarshalJSON joins them.
func (all Hashes) MarshalJSON() ([]byte, error) {
	joined := make([]byte, 0, len(all)*len(events.Hash{}))
	for i := range all {
		joined = append(joined, all[i][:]...)
	}
	return json.Marshal(joined)
}

// UnmarshalJSON reads what MarshalJSON writes.
func (all *Hashes) UnmarshalJSON(text []byte) error {
	var joined []byte
	if err := json.Unmarshal(text, &joined); err != nil {
		return err
	}
	if len(joined)%len(events.Hash{}) != 0 {
		return fmt.Errorf("digests of %d bytes", len(joined))
	}
	*all = make(Hashes, 0, len(joined)/len(events.Hash{}))
	for chunk := range slices.Chunk(joined, len(events.Hash{})) {
		*all = append(*all, events.Hash(chunk))
	}
	return nil
}
