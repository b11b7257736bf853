package testcluster

import (
	"bytes"
	"slices"
	"testing"

	"taskledger/events"
	"taskledger/ledger"
	"taskledger/store"
)

// Damage is a change of a journal of at least five entries, and what verification must find of it.
type Damage struct {
	What string
	Do   func(t testing.TB, all []store.Record) []store.Record
	Kind ledger.Damage
	At   uint64 // number of the entry
}

// Damages has one damage of every kind that the entries of a journal can show by themselves.
var Damages = []Damage{
	{"a flipped byte", func(_ testing.TB, all []store.Record) []store.Record {
		all[2].Data = bytes.Clone(all[2].Data)
		all[2].Data[len(all[2].Data)/2] ^= 1
		return all
	}, ledger.DamageGarbled, 3},
	{"an entry of a later version", func(_ testing.TB, all []store.Record) []store.Record {
		all[2].Data = bytes.Clone(all[2].Data)
		all[2].Data[1]++ // behind the head of an array: the version
		return all
	}, ledger.DamageVersion, 3},
	{"a removed entry", func(_ testing.TB, all []store.Record) []store.Record {
		return slices.Delete(all, 2, 3)
	}, ledger.DamageMissing, 3},
	{"two swapped entries", func(_ testing.TB, all []store.Record) []store.Record {
		all[1].Data, all[2].Data = all[2].Data, all[1].Data
		return all
	}, ledger.DamageOrder, 2},
	{"a replaced entry", func(t testing.TB, all []store.Record) []store.Record {
		all[2].Data = Forged(t, all[2].Data, events.Hash{1}, "")
		return all
	}, ledger.DamageChain, 3},
	{"an illegal transition", func(t testing.TB, all []store.Record) []store.Record {
		all[2].Data = illegal(t, all[2].Data)
		return all
	}, ledger.DamageTransition, 3},
}

// Forged returns an entry with another predecessor, and with its results replaced unless result is "". Its hash fits,
// as somebody makes it who may write everything.
func Forged(t testing.TB, data []byte, prev events.Hash, result string) []byte {
	t.Helper()
	e := Decoded(t, data)
	e.Prev = prev
	for i := range e.Events {
		if s, ok := e.Events[i].Body.(*events.Succeeded); ok && result != "" {
			s.Result = events.JSON([]byte(result))
		}
	}
	return Sealed(t, e)
}

// illegal returns an entry with an event added that the state of its task does not allow. Its hash fits.
func illegal(t testing.TB, data []byte) []byte {
	t.Helper()
	e := Decoded(t, data)
	last := e.Events[len(e.Events)-1]
	e.Events = append(e.Events, events.Event{Task: last.Task, Seq: last.Seq + 1, Prev: last.Position.Ref, Body: &events.Created{Behavior: "job"}})
	return Sealed(t, e)
}
