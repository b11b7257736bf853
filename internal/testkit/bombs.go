package testkit

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"taskledger/internal/wire"
)

const (
	maxFactor = 64       // bytes that decoding one byte may allocate
	maxBytes  = 64 << 20 // that decoding may allocate, however much there is to decode
	slack     = 64 << 10 // what the runtime and the text of an error take
	maxPasses = 80       // that decoding may take the processor time of: ten times what the slowest sound decoder takes
	passBytes = 10 << 20 // that a pass goes through
	// graftBytes is the size of what takes the place of a value: large enough that slack does not hide what it costs.
	graftBytes = 64 << 10
	// tries is the number of times that a cost is measured: others allocate and use the processor, too, and the least
	// is the decoder's.
	tries = 4
)

// Bomb is hostile bytes.
type Bomb struct {
	Name   string
	Data   []byte
	Passes int // the processor time that refusing them may take, in plain passes over 10 MB (about 12 ms each); 0 = 80
}

// fillers are the smallest values of each kind.
var fillers = []struct {
	name  string
	bytes []byte
}{
	{"numbers", []byte{0}},
	{"nils", []byte{0xc0}},
	{"strings", []byte{0xa0}},
	{"arrays", []byte{0x90}},
	{"maps", []byte{0x80}},
	{"bytes", []byte{0xc4, 0}},
	{"pairs", []byte{0x92, 0xa0, 0}},
}

// bombs are msgpack that no decoder may accept.
var bombs = sync.OnceValue(func() []Bomb {
	all := []Bomb{
		{Name: "nothing", Data: nil},
		{Name: "map of 4 G pairs", Data: []byte{0xdf, 0xff, 0xff, 0xff, 0xff}},
		{Name: "array of 10 M", Data: []byte{0xdd, 0x00, 0x98, 0x96, 0x80}},
		{Name: "array of 10 M, 1 MB there", Data: append([]byte{0xdd, 0x00, 0x98, 0x96, 0x80}, make([]byte, 1<<20)...)},
		{Name: "arrays of 64 k in arrays of 64 k", Data: bytes.Repeat([]byte{0xdc, 0xff, 0xff}, 2000)},
		{Name: "1 MB of arrays in arrays", Data: bytes.Repeat([]byte{0x91}, 1<<20)},
		{Name: "10 MB of arrays in arrays", Data: bytes.Repeat([]byte{0x91}, 10<<20)},
		{Name: "10 MB of maps in maps", Data: bytes.Repeat([]byte{0x81, 0xa0}, 5<<20)},
		{Name: "string longer than the rest", Data: []byte{0x91, 0xdb, 0xff, 0xff, 0xff, 0xff, 'a'}},
		{Name: "bytes longer than the rest", Data: []byte{0x91, 0xc6, 0xff, 0xff, 0xff, 0xff, 1}},
		{Name: "length cut off", Data: []byte{0x91, 0xdb, 0xff}},
		{Name: "extension", Data: []byte{0x91, 0xd4, 1, 2}},
		{Name: "extension longer than the rest", Data: []byte{0x91, 0xc9, 0xff, 0xff, 0xff, 0xff, 1}},
		{Name: "one key twice", Data: []byte{0x82, 0xa1, 'a', 1, 0xa1, 'a', 2}},
		{Name: "unused code", Data: []byte{0xc1}},
	}
	for _, size := range []int{1 << 20, 10 << 20} {
		for _, f := range fillers {
			all = append(all, Bomb{Name: fmt.Sprintf("array of %d MB of %s", size>>20, f.name), Data: filled(size, f.bytes)})
		}
	}
	return all
})

// filled is an array of about size bytes, as long as it says.
func filled(size int, filler []byte) []byte {
	n := size / len(filler)
	return append(binary.BigEndian.AppendUint32([]byte{0xdd}, uint32(n)), bytes.Repeat(filler, n)...)
}

// CheckBombs runs decode on every bomb, which it must refuse, and on sample, which it must accept, with something
// appended and with bombs in the place of each value in it, which it may refuse.
func CheckBombs(t *testing.T, sample []byte, decode func([]byte) error) {
	t.Helper()
	CheckGrafts(t, sample, graftBytes, decode)
}

// CheckGrafts is CheckBombs for a decoder that refuses what is long before it looks at it: bombs in the place of values
// are of so many bytes. Where a checksum is looked at first, decode has to append the right one: else no bomb reaches
// the decoder.
func CheckGrafts(t *testing.T, sample []byte, size int, decode func([]byte) error) {
	t.Helper()
	if err := decode(sample); err != nil {
		t.Fatalf("the sample is refused: %v", err)
	}
	for _, b := range append(slices.Clip(bombs()), Bomb{Name: "bytes after the value", Data: append(slices.Clip(sample), 0)}) {
		if err := Bounded(t, b, decode); err == nil {
			t.Errorf("%s: accepted", b.Name)
		}
	}
	all, _ := values(sample, 0)
	step := 1
	if testing.Short() { // a prime to the number of fillers: each of them takes the place of some values
		step = 11
	}
	for i, n := 0, len(all)*len(fillers); i < n; i += step {
		v, f := all[i/len(fillers)], fillers[i%len(fillers)]
		graft := slices.Concat(sample[:v.from], filled(size, f.bytes), sample[v.to:])
		_ = Bounded(t, Bomb{Name: fmt.Sprintf("%s in place of bytes %d to %d", f.name, v.from, v.to), Data: graft}, decode)
	}
}

// span is the place of a value in a message.
type span struct{ from, to int }

// values returns where the values of a sound message stand, those within arrays too, and the end of the first.
func values(b []byte, from int) (all []span, to int) {
	heads := map[byte]int{0xdc: 3, 0xdd: 5}
	to = from + 1
	for wire.Scan(b[from:to]) != nil { // a value has one length
		to++
	}
	all = []span{{from, to}}
	at := to
	if b[from]&0xf0 == 0x90 {
		at = from + 1
	} else if head := heads[b[from]]; head > 0 {
		at = from + head
	}
	for at < to {
		var inner []span
		inner, at = values(b, at)
		all = append(all, inner...)
	}
	return all, to
}

// onePass is the processor time of a pass when the first decoder is held to it.
var onePass = sync.OnceValue(pass)

// pass returns the processor time that this machine, and this build, takes to read 10 MB one byte after the other.
func pass() time.Duration {
	data := make([]byte, passBytes)
	return processorTime(func() {
		var sum uint64
		for _, b := range data {
			sum = sum*31 ^ uint64(b)
		}
		runtime.KeepAlive(sum) // else the compiler could leave the pass out
	})
}

// Bounded runs decode, holds its cost to the bounds, and returns its error. It counts the processor time of the
// goroutine against that of passes, so neither a slow machine nor a busy one changes the verdict.
func Bounded(t *testing.T, b Bomb, decode func([]byte) error) (err error) {
	t.Helper()
	most, passes := min(maxFactor*uint64(len(b.Data))+slack, maxBytes), cmp.Or(b.Passes, maxPasses)
	unit := onePass()
	var took time.Duration
	var allocated uint64
	for range tries {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		took = processorTime(func() { err = decode(b.Data) })
		runtime.ReadMemStats(&after)
		if allocated = after.TotalAlloc - before.TotalAlloc; allocated <= most && took <= time.Duration(passes)*unit {
			return err
		}
		unit = max(unit, pass()) // neighbours on the processor may have slowed it down since
	}
	t.Errorf("%s: %d bytes take %s and %d bytes of memory, want %d passes of %s and %d at most", b.Name, len(b.Data), took, allocated, passes, unit, most)
	return err
}
