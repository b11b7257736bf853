// Package wire reads and writes the project's msgpack without reflection and bounds what hostile bytes can cost.
//
// Everything the project stores or sends, its JSON payloads aside, is msgpack made of arrays, strings, binary strings,
// integers, booleans and nil; Writer and Reader know just these. Any msgpack library can read the result.
package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// MaxDepth bounds how deeply arrays and maps may nest: ours need 5, and recursive decoders die of deep ones.
const MaxDepth = 32

// ErrMalformed is wrapped by every error of this package: the bytes are not what they should be, and never will be.
var ErrMalformed = errors.New("malformed msgpack")

// ErrTail is wrapped beside ErrMalformed by an array of more values than its reader knows, which a later release
// may have written.
var ErrTail = errors.New("more values than are known")

// Scan checks, without recursion or allocation, that b is exactly one msgpack value whose decoding cannot cost more
// than a small multiple of len(b): nesting at most MaxDepth, no length beyond the bytes left, and no more elements
// declared and still missing, over all levels, than bytes left. It must precede every decoder that trusts declared
// lengths.
func Scan(b []byte) error {
	var missing [MaxDepth]uint64 // elements still to come, per open level
	depth, open := 0, uint64(1)  // open = sum of missing, and the top value
	for i := 0; open > 0; {
		if open > uint64(len(b)-i) {
			return fmt.Errorf("%w: %d elements declared, %d bytes left", ErrMalformed, open, len(b)-i)
		}
		head, skip, children, err := measure(b[i:])
		if err != nil {
			return fmt.Errorf("at byte %d: %w", i, err)
		}
		i += head
		if skip > uint64(len(b)-i) {
			return fmt.Errorf("%w: length %d at byte %d, %d bytes left", ErrMalformed, skip, i, len(b)-i)
		}
		i += int(skip)
		open--
		if depth > 0 {
			missing[depth-1]--
		}
		if children > 0 {
			if depth == MaxDepth {
				return fmt.Errorf("%w: nested deeper than %d", ErrMalformed, MaxDepth)
			}
			missing[depth] = children
			depth++
			open += children
		}
		for depth > 0 && missing[depth-1] == 0 {
			depth--
		}
		if open == 0 && i != len(b) {
			return fmt.Errorf("%w: %d bytes after the value", ErrMalformed, len(b)-i)
		}
	}
	return nil
}

// measure tells of the value at the start of b how long its head is, how many bytes follow that belong to it, and how
// many child values.
func measure(b []byte) (head int, skip, children uint64, err error) {
	c := b[0]
	switch {
	case c <= 0x7f, c >= 0xe0: // fixint
		return 1, 0, 0, nil
	case c <= 0x8f:
		return 1, 0, 2 * uint64(c&0x0f), nil
	case c <= 0x9f:
		return 1, 0, uint64(c & 0x0f), nil
	case c <= 0xbf:
		return 1, uint64(c & 0x1f), 0, nil
	}
	sized := func(width int) (uint64, error) {
		if len(b) < 1+width {
			return 0, fmt.Errorf("%w: cut in a length", ErrMalformed)
		}
		return bigEndian(b[1 : 1+width]), nil
	}
	switch c {
	case 0xc0, 0xc2, 0xc3:
		return 1, 0, 0, nil
	case 0xc4, 0xc5, 0xc6: // bin
		n, err := sized(1 << (c - 0xc4))
		return 1 + 1<<(c-0xc4), n, 0, err
	case 0xc7, 0xc8, 0xc9: // ext: a type byte precedes the data
		n, err := sized(1 << (c - 0xc7))
		return 1 + 1<<(c-0xc7), n + 1, 0, err
	case 0xd9, 0xda, 0xdb: // str
		n, err := sized(1 << (c - 0xd9))
		return 1 + 1<<(c-0xd9), n, 0, err
	case 0xca, 0xcb: // float
		return 1, 4 << (c - 0xca), 0, nil
	case 0xcc, 0xcd, 0xce, 0xcf, 0xd0, 0xd1, 0xd2, 0xd3: // uint, int
		return 1, 1 << (c & 3), 0, nil
	case 0xd4, 0xd5, 0xd6, 0xd7, 0xd8: // fixext
		return 1, 1 + 1<<(c-0xd4), 0, nil
	case 0xdc:
		n, err := sized(2)
		return 3, 0, n, err
	case 0xdd:
		n, err := sized(4)
		return 5, 0, n, err
	case 0xde:
		n, err := sized(2)
		return 3, 0, 2 * n, err
	case 0xdf:
		n, err := sized(4)
		return 5, 0, 2 * n, err
	}
	return 0, 0, 0, fmt.Errorf("%w: code 0x%02x", ErrMalformed, c)
}

// bigEndian reads the number that fills b, which has 1, 2, 4 or 8 bytes, or none where a reader has failed.
func bigEndian(b []byte) uint64 {
	switch len(b) {
	case 0:
		return 0
	case 1:
		return uint64(b[0])
	case 2:
		return uint64(binary.BigEndian.Uint16(b))
	case 4:
		return uint64(binary.BigEndian.Uint32(b))
	}
	return binary.BigEndian.Uint64(b)
}
