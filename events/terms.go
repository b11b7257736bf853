package events

import (
	"fmt"
	"math"

	"taskledger/internal/wire"
)

// Terms are the policy and the priority that a further submit brings for a task that exists. They hold from then on.
type Terms struct {
	Policy   Policy // complete
	Priority int64
}

// check returns an error for terms that neither Seal nor Decode accepts.
func (t *Terms) check() error {
	if t == nil {
		return nil
	}
	_, err := t.Policy.Complete()
	return err
}

// Ties say what a task belongs to. The zero value is nothing.
type Ties struct {
	Parent   TaskID // of the task that made it
	Schedule string // whose tick made it
	Group    string // which is retained together
	By       string // the principal on whose behalf it was made; "" = who asked for it
	// Run says what made a run of Schedule whose id does not tell: of one that is named by a UUID.
	Run RunOrigin
}

func (t *Ties) encode(w *wire.Writer) {
	w.Array(3 + tail(t.By != "" || t.Run != 0) + tail(t.Run != 0))
	w.Text(string(t.Parent))
	w.Text(t.Schedule)
	w.Text(t.Group)
	if t.By != "" || t.Run != 0 {
		w.Text(t.By)
	}
	if t.Run != 0 {
		w.Uint(uint64(t.Run))
	}
}

func (t *Ties) decode(r *wire.Reader) {
	n := r.Array()
	t.Parent, t.Schedule, t.Group = TaskID(r.Text()), r.Text(), r.Text()
	switch {
	case n > 5:
		r.Tail(n, 5)
	case n == 5:
		if t.By, t.Run = r.Text(), RunOrigin(upTo(r, math.MaxUint8)); t.Run == 0 {
			r.Fail("ties to a run of nothing")
		}
	case n == 4:
		if t.By = r.Text(); t.By == "" {
			r.Fail("ties on behalf of nobody")
		}
	case n < 3:
		r.Fail("array of %d, want 3 to 5", n)
	case *t == Ties{}:
		r.Fail("ties to nothing")
	}
}

// check returns an error for ties that neither Seal nor Decode accepts.
func (t *Ties) check() error {
	if t.Parent != "" {
		if err := t.Parent.Validate(); err != nil {
			return fmt.Errorf("parent: %w", err)
		}
	}
	if t.Run >= runOriginEnd || t.Run != 0 && t.Schedule == "" {
		return fmt.Errorf("run of origin %d and schedule %q, want an origin less than %d of a schedule",
			t.Run, t.Schedule, runOriginEnd)
	}
	for _, f := range [...]struct{ name, text string }{{"schedule", t.Schedule}, {"group", t.Group}, {"by", t.By}} {
		if len(f.text) > MaxNameBytes {
			return fmt.Errorf("%s: %d bytes exceed the limit of %d", f.name, len(f.text), MaxNameBytes)
		}
	}
	return nil
}

// encodeTerms writes the last value of a body, if there is one.
func encodeTerms(w *wire.Writer, t *Terms) {
	if t == nil {
		return
	}
	w.Array(2)
	t.Policy.Encode(w)
	w.Int(t.Priority)
}

// decodeTerms reads the last value of a body of n values, which may have one less.
func decodeTerms(r *wire.Reader, n, full int) *Terms {
	switch {
	case n == full-1:
		return nil
	case n > full:
		r.Tail(n, full)
		return nil
	case n < full:
		r.Fail("array of %d, want %d or %d", n, full-1, full)
		return nil
	}
	return readTerms(r, r.Array())
}

// readTerms reads terms of n values.
func readTerms(r *wire.Reader, n int) *Terms {
	if n > 2 {
		r.Tail(n, 2)
		return nil
	}
	if n < 2 {
		r.Fail("terms of %d values, want 2", n)
		return nil
	}
	t := new(Terms)
	t.Policy.Decode(r)
	t.Priority = r.Int()
	return t
}

// tail is 1 for a body with its optional last value.
func tail(there bool) int {
	if there {
		return 1
	}
	return 0
}
