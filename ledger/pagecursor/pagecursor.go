// Package pagecursor reads and writes the cursors by which a history is read in pages.
package pagecursor

import (
	"encoding/base64"
	"fmt"

	"taskledger/events"
	"taskledger/internal/wire"
	"taskledger/store"
)

const (
	kind    = "history"
	version = 2
	// maxBytes is more than a cursor has.
	maxBytes = 1 << 10
)

// Cursor says where a page ends, and of which history it is a page.
type Cursor struct {
	Cluster string // its id
	Task    events.TaskID
	Newest  bool       // newest first
	Ref     events.Ref // newest first: the first event of the next page; oldest first: the last event of this one
	Seq     uint64     // of that event
	Last    events.Ref // the last event of its life, as far as that had come
	// Behavior and Node hold what is known after the event at Ref, so that the next page need not look for it. Whoever
	// holds a cursor can make another one: they prove nothing. "" = it is not known, or no attempt runs.
	Behavior, Node string
}

// String returns the cursor as callers get it: base64url of an array [kind, version, cluster, task, newest, ref, seq,
// last, behavior, node].
func (c Cursor) String() string {
	var w wire.Writer
	w.Array(10)
	w.Text(kind)
	w.Uint(version)
	w.Text(c.Cluster)
	w.Text(string(c.Task))
	w.Bool(c.Newest)
	w.Uint(uint64(c.Ref))
	w.Uint(c.Seq)
	w.Uint(uint64(c.Last))
	w.Text(c.Behavior)
	w.Text(c.Node)
	return base64.RawURLEncoding.EncodeToString(w.B)
}

// Parse reads what String returned. It refuses a cursor of another cluster, task or order than want is of, with a
// *store.InvalidError.
func Parse(text string, want Cursor) (Cursor, error) {
	if len(text) > maxBytes {
		return refuse("of %d bytes, a cursor has %d at most", len(text), maxBytes)
	}
	data, err := base64.RawURLEncoding.DecodeString(text)
	r := wire.NewReader(data)
	more := r.ArrayFrom(2)
	if is := r.Text(); err != nil || r.Err() != nil || is != kind {
		return refuse("it is none of a history")
	}
	if is := r.Uint(); r.Err() == nil && is != version {
		return refuse("of version %d, this program reads version %d", is, version)
	}
	if more != 8 {
		r.Fail("%d values", more+2)
	}
	c := Cursor{
		Cluster:  r.Text(),
		Task:     events.TaskID(r.Text()),
		Newest:   r.Bool(),
		Ref:      events.Ref(r.Uint()),
		Seq:      r.Uint(),
		Last:     events.Ref(r.Uint()),
		Behavior: r.Text(),
		Node:     r.Text(),
	}
	switch err := r.Close(); {
	case err != nil || c.String() != text:
		return refuse("it is garbled")
	case c.Cluster != want.Cluster:
		return refuse("of another cluster")
	case c.Task != want.Task:
		return refuse("of task %s", c.Task)
	case c.Newest != want.Newest:
		return refuse("of a history %s first", order(c.Newest))
	}
	return c, nil
}

func refuse(format string, args ...any) (Cursor, error) {
	return Cursor{}, &store.InvalidError{Field: "cursor", Problem: fmt.Sprintf(format, args...)}
}

func order(newest bool) string {
	if newest {
		return "newest"
	}
	return "oldest"
}
