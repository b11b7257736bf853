package events

import "taskledger/internal/wire"

// ToyCounted counts an attempt that has ended, and holds its task.
type ToyCounted struct{ Task TaskID }

// ToyRang says that the bell rang for so many attempts.
type ToyRang struct{ For uint64 }

func (*ToyCounted) Kind() Kind { return KindToyCounted }
func (*ToyRang) Kind() Kind    { return KindToyRang }

func (*ToyCounted) payload() Payload { return nil }
func (*ToyRang) payload() Payload    { return nil }

func (b *ToyCounted) encode(w *wire.Writer) { w.Array(1); w.Text(string(b.Task)) }
func (b *ToyRang) encode(w *wire.Writer)    { w.Array(1); w.Uint(b.For) }

func (b *ToyCounted) decode(r *wire.Reader, _ Payload) { r.ArrayOf(1); b.Task = TaskID(r.Text()) }
func (b *ToyRang) decode(r *wire.Reader, _ Payload)    { r.ArrayOf(1); b.For = r.Uint() }
