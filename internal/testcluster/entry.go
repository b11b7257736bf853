package testcluster

import (
	"testing"

	"taskledger/events"
)

// Decoded returns an entry of its stored form.
func Decoded(t testing.TB, data []byte) *events.Entry {
	t.Helper()
	e, err := events.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// Sealed returns the stored form of an entry that was altered, with a hash that fits: what somebody writes who may
// write all.
func Sealed(t testing.TB, e *events.Entry) []byte {
	t.Helper()
	var b events.Builder
	head := *e
	head.Origins, head.Events = nil, nil
	b.Reset(head)
	for _, o := range e.Origins {
		b.AddOrigin(o)
	}
	for _, ev := range e.Events {
		b.Add(ev)
	}
	data, err := b.Seal()
	if err != nil {
		t.Fatal(err)
	}
	e.Hash = b.Entry.Hash
	return data
}
