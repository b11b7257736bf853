package tasklog

import (
	"encoding/base64"
	"fmt"
	"math"

	"taskledger/events"
	"taskledger/internal/wire"
)

const (
	cursorKind    = "log"
	cursorVersion = 1
	// maxCursorBytes is more than the text of a cursor has.
	maxCursorBytes = 1 << 10
)

// Text returns the cursor as callers of a task's log get it: base64url of an array [kind, version, task, life,
// attempt, line].
func (c Cursor) Text(id events.TaskID, life events.Ref) string {
	var w wire.Writer
	w.Array(6)
	w.Text(cursorKind)
	w.Uint(cursorVersion)
	w.Text(string(id))
	w.Uint(uint64(life))
	w.Uint(uint64(c.Attempt))
	w.Uint(c.Line)
	return base64.RawURLEncoding.EncodeToString(w.B)
}

// ParseCursor reads what Text returned; "" is the beginning. It refuses a cursor of another task or another life of
// it with an *events.InvalidError.
func ParseCursor(text string, id events.TaskID, life events.Ref) (Cursor, error) {
	if text == "" {
		return Cursor{}, nil
	}
	if len(text) > maxCursorBytes {
		return refuseCursor("of %d bytes, a cursor has %d at most", len(text), maxCursorBytes)
	}
	data, err := base64.RawURLEncoding.DecodeString(text)
	r := wire.NewReader(data)
	more := r.ArrayFrom(2)
	if is := r.Text(); err != nil || r.Err() != nil || is != cursorKind {
		return refuseCursor("it is none of a log")
	}
	if is := r.Uint(); r.Err() == nil && is != cursorVersion {
		return refuseCursor("of version %d, this program reads version %d", is, cursorVersion)
	}
	if more != 4 {
		r.Fail("%d values", more+2)
	}
	task, of, attempt, line := events.TaskID(r.Text()), events.Ref(r.Uint()), r.Uint(), r.Uint()
	c := Cursor{Attempt: uint32(attempt), Line: line}
	switch err := r.Close(); {
	case err != nil || attempt > math.MaxUint32 || c.Text(task, of) != text:
		return refuseCursor("it is garbled")
	case task != id:
		return refuseCursor("of task %s", task)
	case of != life:
		return refuseCursor("of another life of the task")
	}
	return c, nil
}

func refuseCursor(format string, args ...any) (Cursor, error) {
	return Cursor{}, &events.InvalidError{Field: "cursor", Problem: fmt.Sprintf(format, args...)}
}
