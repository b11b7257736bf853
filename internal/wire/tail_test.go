package wire_test

import (
	"errors"
	"slices"
	"testing"

	"taskledger/internal/wire"
)

// told holds the values that the reader below knows: [number, [text, [number ...]], [[number, text] ...]].
type told struct {
	n     uint64
	text  string
	some  []uint64
	pairs []string
}

func (v *told) decode(r *wire.Reader) {
	*v = told{}
	r.ArrayOf(3)
	v.n = r.Uint()
	r.ArrayOf(2)
	v.text = r.Text()
	for range r.Array() {
		v.some = append(v.some, r.Uint())
	}
	for range r.Array() {
		r.ArrayOf(2)
		r.Uint()
		v.pairs = append(v.pairs, r.Text())
	}
}

func readTold(data []byte, v *told) error {
	return wire.Told(data, func(data []byte) error {
		if err := wire.Scan(data); err != nil {
			return err
		}
		r := wire.NewReader(data)
		v.decode(r)
		return r.Close()
	})
}

// Whatever a later release appends, at any depth, a reader finds what it knows, and bytes that are damaged are no tail.
func TestTold_PassesOverTailsAtAnyDepth(t *testing.T) {
	build := func(outer, inner, pair int) []byte {
		var w wire.Writer
		more := func(n int) {
			for range n {
				w.Array(2)
				w.Text("later")
				w.Bytes([]byte{1, 2})
			}
		}
		w.Array(3 + outer)
		w.Uint(7)
		w.Array(2 + inner)
		w.Text("a")
		w.Array(2)
		w.Uint(300)
		w.Uint(70_000)
		more(inner)
		w.Array(20)
		for range 20 {
			w.Array(2 + pair)
			w.Uint(9)
			w.Text("pair")
			more(pair)
		}
		more(outer)
		return w.B
	}
	for _, n := range [][3]int{{0, 0, 0}, {1, 0, 0}, {0, 1, 0}, {0, 0, 1}, {14, 20, 3}} {
		data := build(n[0], n[1], n[2])
		before := slices.Clone(data)
		var v told
		if err := readTold(data, &v); err != nil || v.n != 7 || v.text != "a" || !slices.Equal(v.some, []uint64{300, 70_000}) || len(v.pairs) != 20 || v.pairs[19] != "pair" {
			t.Errorf("with tails of %v values: %+v, %v", n, v, err)
		}
		if !slices.Equal(data, before) {
			t.Errorf("with tails of %v values: the message was changed", n)
		}
		for cut := range len(data) {
			if err := readTold(data[:cut], &v); !errors.Is(err, wire.ErrMalformed) {
				t.Errorf("with tails of %v values, cut at byte %d: %v", n, cut, err)
			}
		}
	}
}

// The number of tails is bounded, as each costs a copy of the message.
func TestTold_GivesUpAtTooManyTails(t *testing.T) {
	var w wire.Writer
	w.Array(3)
	w.Uint(7)
	w.Array(2)
	w.Text("a")
	w.Array(0)
	w.Array(5000)
	for range 5000 {
		w.Array(3)
		w.Uint(9)
		w.Text("")
		w.Bool(true)
	}
	var v told
	if err := readTold(w.B, &v); !errors.Is(err, wire.ErrMalformed) || errors.Is(err, wire.ErrTail) {
		t.Errorf("read with %v", err)
	}
}
