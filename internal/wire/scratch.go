package wire

import "sync"

var scratch = sync.Pool{New: func() any { return new(Writer) }}

// Scratch returns an empty Writer that was used before, for what is encoded first and copied in its size then. Done
// takes it back.
func Scratch() *Writer {
	w := scratch.Get().(*Writer)
	w.B = w.B[:0]
	return w
}

// Done gives a Writer back for another use. The caller keeps nothing of B.
func (w *Writer) Done() { scratch.Put(w) }
