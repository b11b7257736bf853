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
// attempt, line], with [..., told, [attempt, line, ...]] behind it where Told or Behind says something.
func (c Cursor) Text(id events.TaskID, life events.Ref) string {
	var w wire.Writer
	more := c.Told || len(c.Behind) > 0
	if more {
		w.Array(8)
	} else {
		w.Array(6)
	}
	w.Text(cursorKind)
	w.Uint(cursorVersion)
	w.Text(string(id))
	w.Uint(uint64(life))
	w.Uint(uint64(c.Attempt))
	w.Uint(c.Line)
	if more {
		w.Bool(c.Told)
		w.Array(2 * len(c.Behind))
		for _, at := range c.Behind {
			w.Uint(uint64(at.Attempt))
			w.Uint(at.Line)
		}
	}
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
	if more != 4 && more != 6 {
		r.Fail("%d values", more+2)
	}
	task, of := events.TaskID(r.Text()), events.Ref(r.Uint())
	c := Cursor{Place: readPlace(r)}
	if more == 6 {
		c.Told = r.Bool()
		n := r.Array()
		for i := 0; i < n && i < 2*(MaxAttempts-1) && r.Err() == nil; i += 2 {
			c.Behind = append(c.Behind, readPlace(r))
		}
	}
	switch err := r.Close(); {
	case err != nil || c.Text(task, of) != text:
		return refuseCursor("it is garbled")
	case task != id:
		return refuseCursor("of task %s", task)
	case of != life:
		return refuseCursor("of another life of the task")
	}
	return c, nil
}

func readPlace(r *wire.Reader) Place {
	attempt := r.Uint()
	if attempt > math.MaxUint32 {
		r.Fail("attempt %d", attempt)
	}
	return Place{uint32(attempt), r.Uint()}
}

func refuseCursor(format string, args ...any) (Cursor, error) {
	return Cursor{}, &events.InvalidError{Field: "cursor", Problem: fmt.Sprintf(format, args...)}
}
