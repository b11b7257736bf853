package events_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"reflect"
	"runtime"
	"testing"

	"taskledger/events"
	"taskledger/internal/wire"
)

// repair makes the hash of an entry fit its content, so that fuzzing reaches beyond the check of the hash. It returns
// nil for what has not the outer form of an entry.
func repair(b []byte) []byte {
	r := wire.NewReader(b)
	r.ArrayOf(5)
	r.Uint()
	head := r.View()
	var digests []byte
	for range 2 { // origins and their answers, then events and their payloads
		for range r.Array() / 2 {
			d := digest(r.View(), r.View())
			digests = append(digests, d[:]...)
		}
	}
	if hash := r.View(); r.Close() != nil || len(hash) != sha256.Size {
		return nil
	}
	return append(bytes.Clone(b[:len(b)-sha256.Size]), chain(head, digests)...)
}

// FuzzDecodeEntry decodes any bytes: errors wrap ErrDamaged, memory stays within a small multiple of the input, and
// what was read is written and read again as the same.
func FuzzDecodeEntry(f *testing.F) {
	_, data := seal(f, sampleHead(), sampleOrigins, samples()...)
	another := bytes.Clone(data)
	another[len(another)-1]++
	if repaired := repair(another); !bytes.Equal(repaired, data) {
		f.Fatalf("an entry with another hash is repaired as\n%x\nwant\n%x", repaired, data)
	}
	f.Add(data)
	for _, ev := range samples() {
		_, one := seal(f, sampleHead(), sampleOrigins, ev)
		f.Add(one)
	}
	f.Add([]byte{0xdf, 0xff, 0xff, 0xff, 0xff})
	f.Add(bytes.Repeat([]byte{0x91}, 100))
	for _, b := range bombs(4 << 10) {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		e := within(t, b)
		if e == nil {
			e = within(t, repair(b))
		}
		if e == nil {
			return
		}
		again := rebuild(t, e)
		again.Hash = e.Hash // of another encoding of the same values
		if !reflect.DeepEqual(again, e) {
			t.Fatalf("written and read again:\n%+v\nwant\n%+v", again, e)
		}
	})
}

// within decodes b and checks the kind of error and the memory allocated: every byte can declare an origin and every
// second one an event, and no entry is larger than MaxEntryBytes.
func within(t *testing.T, b []byte) *events.Entry {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	e, err := events.Decode(b)
	runtime.ReadMemStats(&after)
	if err != nil && !errors.Is(err, events.ErrDamaged) {
		t.Fatalf("%v does not wrap ErrDamaged", err)
	}
	const slack = 64 << 10 // what the runtime and an error's text cost
	if got := after.TotalAlloc - before.TotalAlloc; got > min(128*uint64(len(b))+slack, 64<<20) {
		t.Fatalf("%d bytes allocated to decode %d", got, len(b))
	}
	return e
}

func rebuild(t *testing.T, e *events.Entry) *events.Entry {
	t.Helper()
	head := *e
	head.Origins, head.Events = nil, nil
	_, data := seal(t, head, e.Origins, e.Events...)
	again, err := events.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	return again
}

// bombs returns entries of about size bytes that declare as many events, or origins, as their size allows, keyed by the
// errors that they lead to.
func bombs(size int) map[string][]byte {
	head := func(origins int) []byte {
		var w wire.Writer
		w.Array(8)
		w.Uint(0)
		w.Uint(1)
		w.Int(1)
		w.Text("n")
		w.Int(0)
		w.Bytes(make([]byte, sha256.Size))
		w.Uint(uint64(origins))
		w.Uint(events.FoldRules)
		return w.B
	}
	entry := func(head []byte, origins, count int) []byte {
		var w wire.Writer
		w.Array(5)
		w.Uint(events.EntryVersion)
		w.Bytes(head)
		for _, parts := range []int{2 * origins, 2 * count} {
			w.Array(parts)
			w.B = append(w.B, bytes.Repeat([]byte{0xc0}, parts)...)
		}
		w.Bytes(make([]byte, sha256.Size))
		return w.B
	}
	const rest = 128 // more than everything else takes
	most := (size - rest) / 2
	return map[string][]byte{
		"headers and payloads":                entry(head(0), 0, most),
		fmt.Sprint("says ", most, " origins"): entry(head(most), most, 0),
		"says 2147483647 origins":             entry(head(math.MaxInt32), 0, most),
	}
}

func TestDecode_AllocatesASmallMultipleOfItsInput(t *testing.T) {
	for _, size := range []int{4 << 10, events.MaxEntryBytes, 8 << 20} {
		for name, b := range bombs(size) {
			t.Run(fmt.Sprintf("%d bytes of %s", size, name), func(t *testing.T) {
				want := name
				if size > events.MaxEntryBytes {
					want = fmt.Sprint("exceed the limit of ", events.MaxEntryBytes)
				}
				refusedFor(t, b, want)
				within(t, b)
			})
		}
	}
	t.Run("largest valid entry of the smallest events", func(t *testing.T) {
		var b events.Builder
		b.Reset(sampleHead())
		for b.Size() < events.MaxEntryBytes-64 {
			b.Add(events.Event{Task: "a", Body: &events.Deleted{}})
		}
		data, err := b.Seal()
		if err != nil {
			t.Fatal(err)
		}
		if e := within(t, data); e == nil || len(e.Events) != len(b.Entry.Events) {
			t.Error("a valid entry was refused")
		}
	})
}
