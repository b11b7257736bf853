package events

import (
	"math"

	"taskledger/internal/wire"
)

func (*TokenMoved) Kind() Kind { return KindTokenMoved }
func (*ChangeHeld) Kind() Kind { return KindChangeHeld }
func (*HoldMoved) Kind() Kind  { return KindHoldMoved }

func (*TokenMoved) payload() Payload { return nil }
func (*ChangeHeld) payload() Payload { return nil }
func (*HoldMoved) payload() Payload  { return nil }

func (b *TokenMoved) encode(w *wire.Writer) {
	w.Array(7)
	w.Uint(uint64(b.Attempt))
	w.Bytes([]byte(b.Token))
	w.Bool(b.Simulated)
	b.Items.encode(w)
	EncodeItemErrors(w, b.Errors)
	w.Uint(b.Open)
	w.Int(int64(b.Oldest))
}

func (b *TokenMoved) decode(r *wire.Reader, _ Payload) {
	r.ArrayOf(7)
	b.Attempt, b.Token, b.Simulated = Ref(r.Uint()), string(r.View()), r.Bool()
	b.Items.decode(r)
	b.Errors = DecodeItemErrors(r)
	b.Open, b.Oldest = r.Uint(), Millis(r.Int())
}

func (b *ChangeHeld) encode(w *wire.Writer) {
	w.Array(9)
	w.Uint(uint64(b.Attempt))
	w.Uint(uint64(b.Hold))
	w.Uint(uint64(b.Partition))
	w.Bytes([]byte(b.Key))
	w.Bytes([]byte(b.At))
	w.Bytes(b.Data)
	w.Text(b.Code)
	w.Text(b.Message)
	w.Bool(b.Passed)
}

func (b *ChangeHeld) decode(r *wire.Reader, _ Payload) {
	r.ArrayOf(9)
	b.Attempt, b.Hold = Ref(r.Uint()), uint32(upTo(r, math.MaxUint32))
	b.Partition = uint32(upTo(r, math.MaxUint32))
	b.Key, b.At, b.Data = string(r.View()), string(r.View()), r.Bytes()
	b.Code, b.Message, b.Passed = r.Text(), r.Text(), r.Bool()
}

func (b *HoldMoved) encode(w *wire.Writer) {
	w.Array(3)
	w.Uint(uint64(b.Hold))
	w.Uint(uint64(b.Done))
	w.Bool(b.Ended)
}

func (b *HoldMoved) decode(r *wire.Reader, _ Payload) {
	r.ArrayOf(3)
	b.Hold, b.Done = uint32(upTo(r, math.MaxUint32)), uint32(upTo(r, math.MaxUint32))
	b.Ended = r.Bool()
}
