package wire_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"taskledger/internal/testkit"
	"taskledger/internal/wire"
)

// hostile names byte strings that made msgpack decoders allocate gigabytes, overflow their stack or read past the end.
func hostile() map[string][]byte {
	return map[string][]byte{
		"nothing":                        {},
		"map of 4 G pairs":               {0xdf, 0xff, 0xff, 0xff, 0xff},
		"map16 without pairs":            {0xde, 0xff, 0xff},
		"fixmap without pairs":           {0x81},
		"fixmap with half a pair":        {0x81, 0x01},
		"array of 4 G values":            {0xdd, 0xff, 0xff, 0xff, 0xff},
		"array of 10 M values":           {0xdd, 0x00, 0x98, 0x96, 0x80, 0x01},
		"array16 one value short":        {0xdc, 0x00, 0x02, 0x01},
		"nested array16 of 64 K values":  bytes.Repeat([]byte{0xdc, 0xff, 0xff}, 2000),
		"siblings that share the bytes":  append([]byte{0x92, 0xdc, 0x00, 0x08}, make([]byte, 8)...),
		"10 MB of nested arrays":         bytes.Repeat([]byte{0x91}, 10<<20),
		"one array too deep":             append(bytes.Repeat([]byte{0x91}, wire.MaxDepth+1), 0x01),
		"one map too deep":               append(bytes.Repeat([]byte{0x81, 0x01}, wire.MaxDepth+1), 0x01),
		"text longer than the rest":      {0xdb, 0xff, 0xff, 0xff, 0xff, 'a'},
		"fixtext longer than the rest":   {0xa2, 'a'},
		"bytes longer than the rest":     {0xc6, 0x7f, 0xff, 0xff, 0xff},
		"extension longer than the rest": {0xc9, 0xff, 0xff, 0xff, 0xff, 0x01},
		"extension without data":         {0xc7, 0x00},
		"fixed extension cut":            {0xd8, 0x01, 0x02},
		"length cut":                     {0xdb, 0x00, 0x00},
		"array length cut":               {0xdd, 0x00},
		"number cut":                     {0xcf, 0x00, 0x00, 0x00},
		"float cut":                      {0xca, 0x00},
		"code never used":                {0xc1},
		"code never used, inside":        {0x92, 0x01, 0xc1},
		"trailing byte":                  {0x01, 0x01},
		"trailing byte after an array":   {0x91, 0x01, 0xc0},
	}
}

func TestScan_RefusesHostileBytesForTheCostOfAnError(t *testing.T) {
	for name, b := range hostile() {
		t.Run(name, func(t *testing.T) {
			if err := wire.Scan(b); !errors.Is(err, wire.ErrMalformed) {
				t.Fatalf("Scan = %v, want an error that wraps ErrMalformed", err)
			}
			// The least of several: the race detector makes fmt forget its buffers at random.
			least := math.Inf(1)
			for range 10 {
				least = min(least, testing.AllocsPerRun(1, func() { _ = wire.Scan(b) }))
			}
			if least > 8 {
				t.Errorf("%v allocations, want at most the few of an error", least)
			}
		})
	}
}

func TestScan_AcceptsEveryCode(t *testing.T) {
	for name, b := range map[string][]byte{
		"positive fixint": {0x7f}, "negative fixint": {0xe0}, "nil": {0xc0}, "false": {0xc2}, "true": {0xc3},
		"fixmap": {0x81, 0x01, 0x02}, "fixarray": {0x92, 0x01, 0x02}, "empty array": {0x90}, "fixstr": {0xa1, 'a'},
		"bin8": {0xc4, 1, 0}, "bin16": {0xc5, 0, 1, 0}, "bin32": {0xc6, 0, 0, 0, 1, 0},
		"ext8": {0xc7, 1, 9, 0}, "ext16": {0xc8, 0, 1, 9, 0}, "ext32": {0xc9, 0, 0, 0, 1, 9, 0},
		"float32": append([]byte{0xca}, make([]byte, 4)...), "float64": append([]byte{0xcb}, make([]byte, 8)...),
		"uint8": {0xcc, 0}, "uint16": {0xcd, 0, 0}, "uint32": append([]byte{0xce}, make([]byte, 4)...),
		"uint64": append([]byte{0xcf}, make([]byte, 8)...),
		"int8":   {0xd0, 0}, "int16": {0xd1, 0, 0}, "int32": append([]byte{0xd2}, make([]byte, 4)...),
		"int64":    append([]byte{0xd3}, make([]byte, 8)...),
		"fixext1":  append([]byte{0xd4}, make([]byte, 2)...),
		"fixext2":  append([]byte{0xd5}, make([]byte, 3)...),
		"fixext4":  append([]byte{0xd6}, make([]byte, 5)...),
		"fixext8":  append([]byte{0xd7}, make([]byte, 9)...),
		"fixext16": append([]byte{0xd8}, make([]byte, 17)...),
		"str8":     {0xd9, 1, 'a'}, "str16": {0xda, 0, 1, 'a'}, "str32": {0xdb, 0, 0, 0, 1, 'a'},
		"array16": {0xdc, 0, 1, 0}, "array32": {0xdd, 0, 0, 0, 1, 0},
		"map16": {0xde, 0, 1, 0, 0}, "map32": {0xdf, 0, 0, 0, 1, 0, 0},
		"deepest": append(bytes.Repeat([]byte{0x91}, wire.MaxDepth), 0x01),
	} {
		if err := wire.Scan(b); err != nil {
			t.Errorf("%s: Scan = %v", name, err)
		}
		if err := wire.Scan(b[:len(b)-1]); !errors.Is(err, wire.ErrMalformed) {
			t.Errorf("%s, cut by a byte: Scan = %v, want an error that wraps ErrMalformed", name, err)
		}
		if err := wire.Scan(append(bytes.Clone(b), 0)); !errors.Is(err, wire.ErrMalformed) {
			t.Errorf("%s and a byte more: Scan = %v, want an error that wraps ErrMalformed", name, err)
		}
	}
}

func TestScan_DoesNotAllocate(t *testing.T) {
	b := sample().B
	if got := testing.AllocsPerRun(100, func() {
		if err := wire.Scan(b); err != nil {
			t.Error(err)
		}
	}); got != 0 {
		t.Errorf("%v allocations, want 0", got)
	}
}

// recursive is Scan as msgpack's specification reads, without care for hostile input beyond the depth.
func recursive(b []byte, depth int) (rest []byte, ok bool) {
	if len(b) == 0 {
		return nil, false
	}
	c, b := b[0], b[1:]
	switch {
	case c <= 0x7f, c >= 0xe0, c == 0xc0, c == 0xc2, c == 0xc3:
		return b, true
	case c <= 0x8f:
		return values(b, 2*uint64(c&0x0f), depth)
	case c <= 0x9f:
		return values(b, uint64(c&0x0f), depth)
	case c <= 0xbf:
		return skip(b, uint64(c&0x1f))
	case c >= 0xc4 && c <= 0xc6:
		return sized(b, 1<<(c-0xc4), func(n uint64, b []byte) ([]byte, bool) { return skip(b, n) })
	case c >= 0xc7 && c <= 0xc9:
		return sized(b, 1<<(c-0xc7), func(n uint64, b []byte) ([]byte, bool) { return skip(b, n+1) })
	case c >= 0xd9 && c <= 0xdb:
		return sized(b, 1<<(c-0xd9), func(n uint64, b []byte) ([]byte, bool) { return skip(b, n) })
	case c == 0xdc, c == 0xdd:
		return sized(b, 2<<(c-0xdc), func(n uint64, b []byte) ([]byte, bool) { return values(b, n, depth) })
	case c == 0xde, c == 0xdf:
		return sized(b, 2<<(c-0xde), func(n uint64, b []byte) ([]byte, bool) { return values(b, 2*n, depth) })
	}
	fixed := map[byte]uint64{0xca: 4, 0xcb: 8, 0xcc: 1, 0xcd: 2, 0xce: 4, 0xcf: 8, 0xd0: 1, 0xd1: 2, 0xd2: 4, 0xd3: 8,
		0xd4: 2, 0xd5: 3, 0xd6: 5, 0xd7: 9, 0xd8: 17}
	n, known := fixed[c]
	if !known {
		return nil, false
	}
	return skip(b, n)
}

func skip(b []byte, n uint64) ([]byte, bool) {
	if n > uint64(len(b)) {
		return nil, false
	}
	return b[n:], true
}

func sized(b []byte, width int, then func(n uint64, b []byte) ([]byte, bool)) ([]byte, bool) {
	if len(b) < width {
		return nil, false
	}
	full := append(make([]byte, 8-width), b[:width]...)
	return then(binary.BigEndian.Uint64(full), b[width:])
}

func values(b []byte, n uint64, depth int) (rest []byte, ok bool) {
	if n > 0 && depth == wire.MaxDepth {
		return nil, false
	}
	for ok = true; n > 0 && ok; n-- {
		b, ok = recursive(b, depth+1)
	}
	return b, ok
}

// agree reports how Scan and the recursive reference differ on b. The sum of declared elements, which only Scan minds,
// cannot make them differ: every element takes a byte at least.
func agree(b []byte) error {
	rest, ok := recursive(b, 0)
	ok = ok && len(rest) == 0
	err := wire.Scan(b)
	if (err == nil) != ok {
		return fmt.Errorf("Scan(%x) = %v, the recursive checker says %v", b, err, ok)
	}
	if err != nil && !errors.Is(err, wire.ErrMalformed) {
		return fmt.Errorf("Scan(%x) = %w, which does not wrap ErrMalformed", b, err)
	}
	return nil
}

func TestScan_AgreesWithARecursiveChecker(t *testing.T) {
	codes := rapid.SampledFrom([]byte{0x00, 0x01, 0x02, 0x7f, 0x80, 0x81, 0x82, 0x90, 0x91, 0x92, 0x93, 0xa0, 0xa1, 0xa3, 0xc0, 0xc1,
		0xc2, 0xc4, 0xc5, 0xc6, 0xc7, 0xc8, 0xc9, 0xca, 0xcb, 0xcc, 0xcd, 0xce, 0xcf, 0xd3, 0xd4, 0xd8, 0xd9, 0xda, 0xdb, 0xdc,
		0xdd, 0xde, 0xdf, 0xe0, 0xff})
	t.Run("any bytes", rapid.MakeCheck(func(t *rapid.T) {
		b := rapid.SliceOfN(rapid.OneOf(codes, rapid.Byte()), 0, 60).Draw(t, "bytes")
		if err := agree(b); err != nil {
			t.Fatal(err)
		}
	}))
	t.Run("valid bytes, one of them changed", rapid.MakeCheck(func(t *rapid.T) {
		var w wire.Writer
		write(t, &w, 0)
		if err := agree(w.B); err != nil {
			t.Fatal(err)
		}
		w.B[rapid.IntRange(0, len(w.B)-1).Draw(t, "at")] = rapid.OneOf(codes, rapid.Byte()).Draw(t, "byte")
		if err := agree(w.B); err != nil {
			t.Fatal(err)
		}
	}))
}

func FuzzScan(f *testing.F) {
	f.Add(sample().B)
	for _, b := range hostile() {
		if len(b) < 1<<16 {
			f.Add(b)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if err := agree(b); err != nil {
			t.Fatal(err)
		}
	})
}

func TestScan_BombsCostLittle(t *testing.T) {
	testkit.CheckBombs(t, []byte{0x93, 1, 0xa1, 'a', 0x91, 0xc0}, func(b []byte) error {
		if err := wire.Scan(b); err != nil {
			return err
		}
		r := wire.NewReader(b)
		r.ArrayOf(3)
		r.Uint()
		_ = r.Text()
		r.ArrayOf(1)
		r.View()
		return r.Close()
	})
}
