// Package frame encodes records so that a file of them tells a write that a crash has cut short from damage. Package
// filejournal describes their form.
package frame

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/bits"
	"math/rand/v2"
)

const (
	// HeaderBytes is the length of what stands before the data.
	HeaderBytes = 80
	// MaxData bounds the data of a frame.
	MaxData = 64 << 20

	magic  = 0x544c4a31
	sector = 512
	// firstSeeds are tried in order: one of 64 fits all data but those made to fit none of them. Others are drawn, so
	// that nobody can make data that fit none. maxSeeds bounds the search.
	firstSeeds = 1 << 6
	maxSeeds   = 1 << 10
)

var (
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
	magicBytes = binary.LittleEndian.AppendUint32(nil, magic)
)

// Frame is a record.
type Frame struct {
	Shard    int
	Number   uint64
	Revision int64
	Durable  int64 // offset in the file
	Data     []byte
}

// Size returns the bytes that a frame takes.
func Size(data int) int64 { return HeaderBytes + int64(data) }

// ErrEmpty and ErrTooLarge report data that no frame holds.
var (
	ErrEmpty    = errors.New("a record has no data")
	ErrTooLarge = fmt.Errorf("a record has more data than the limit of %d bytes", MaxData)
)

// Append appends a frame to buf, whose beginning stands at the offset at of the file.
func Append(buf []byte, at int64, f Frame) ([]byte, error) {
	switch {
	case len(f.Data) == 0:
		return buf, ErrEmpty
	case len(f.Data) > MaxData:
		return buf, ErrTooLarge
	}
	start := len(buf)
	at += int64(start)
	buf = append(buf, make([]byte, HeaderBytes)...)
	buf = append(buf, f.Data...)
	header, data := buf[start:start+HeaderBytes], buf[start+HeaderBytes:]
	le := binary.LittleEndian
	le.PutUint32(header, magic)
	le.PutUint32(header[8:], uint32(len(data)))
	le.PutUint32(header[16:], uint32(int32(f.Shard)))
	le.PutUint64(header[24:], f.Number)
	le.PutUint64(header[32:], uint64(f.Revision))
	le.PutUint64(header[40:], uint64(f.Durable))
	sum := sha256.Sum256(f.Data)
	copy(header[48:], sum[:])
	for try := uint32(1); misleads(buf[start:], at) && try <= maxSeeds; try++ {
		seed := try
		if seed > firstSeeds {
			seed = max(rand.Uint32(), 1)
		}
		copy(data, f.Data)
		mask(data, seed)
		le.PutUint32(header[12:], seed)
	}
	le.PutUint32(header[20:], crc32.Checksum(data, castagnoli))
	le.PutUint32(header[4:], crc32.Checksum(header[8:], castagnoli))
	return buf, nil
}

// misleads reports whether a record at an offset may be taken for something else, once a part of it is damaged or was
// never written: where it has a part of a sector that a flipped bit makes zeros, or bytes that DurableAfter may take
// for the beginning of another record.
func misleads(record []byte, at int64) bool {
	return hasPart(record, at, almostZero) || hasHeader(record)
}

// hasHeader reports whether what follows the beginning of a record may be read as the header of another one. In its
// data the magic is enough, since the bytes behind the record may complete the header.
func hasHeader(record []byte) bool {
	for from := 1; ; {
		found := bytes.Index(record[from:], magicBytes)
		if found < 0 {
			return false
		}
		from += found
		if _, _, _, err := readHeader(record, int64(from)); err == nil || from > HeaderBytes-len(magicBytes) {
			return true
		}
		from++
	}
}

// mask combines data with the sequence of a seed; doing so twice restores them.
func mask(data []byte, seed uint32) {
	if seed == 0 {
		return
	}
	state := uint64(seed)
	for len(data) > 0 {
		state += 0x9e3779b97f4a7c15
		z := state
		z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
		z = (z ^ z>>27) * 0x94d049bb133111eb
		z ^= z >> 31
		for i := range min(8, len(data)) {
			data[i] ^= byte(z >> (8 * i))
		}
		data = data[min(8, len(data)):]
	}
}

// hasPart reports whether a part of a sector that the record at an offset takes is such.
func hasPart(record []byte, at int64, such func([]byte) bool) bool {
	for len(record) > 0 {
		n := min(sector-int(at%sector), len(record))
		if such(record[:n]) {
			return true
		}
		record, at = record[n:], at+int64(n)
	}
	return false
}

// zeros is a sector that was never written.
var zeros [sector]byte

func isZero(part []byte) bool { return bytes.Equal(part, zeros[:len(part)]) }

// almostZero reports whether one bit at most is set.
func almostZero(part []byte) bool {
	set := 0
	for _, b := range part {
		if set += bits.OnesCount8(b); set > 1 {
			return false
		}
	}
	return true
}

// BrokenError reports that a file holds no whole record at an offset.
type BrokenError struct {
	Problem string
	Torn    bool // a write that a crash has cut short looks so
	Zeros   bool // a sector of it was never written: the machine has lost it, since a crash of the process takes the end alone
}

// Error implements error.
func (e *BrokenError) Error() string { return e.Problem }

// damaged returns the error of a record that is not cut short, and may lack sectors.
func damaged(zeros bool, problem string) error { return &BrokenError{problem, zeros, zeros} }

// short returns the error of a record with whose beginning the file ends.
func short(begin []byte, at int64) error {
	return &BrokenError{"the file ends inside the record", true, lacksSector(begin, at)}
}

// lacksSector reports whether a part of a sector was never written of the beginning of a record. The last one may be
// zeros as it was written where the file ends inside a sector, unless the record begins there.
func lacksSector(begin []byte, at int64) bool {
	inLast := int((at + int64(len(begin))) % sector)
	if inLast < len(begin) {
		begin = begin[:len(begin)-inLast]
	}
	return hasPart(begin, at, isZero)
}

// Read reads the record at an offset of a file, whose bytes it is given, and returns the offset behind it. The data
// are the caller's own. An error is a BrokenError.
func Read(file []byte, at int64) (f Frame, next int64, err error) {
	f, seed, length, err := readHeader(file, at)
	if err != nil {
		return Frame{}, at, err
	}
	next = at + Size(length)
	if next > int64(len(file)) {
		return Frame{}, at, short(file[at:], at)
	}
	data := file[at+HeaderBytes : next]
	if crc32.Checksum(data, castagnoli) != binary.LittleEndian.Uint32(file[at+20:]) {
		return Frame{}, at, damaged(hasPart(file[at:next], at, isZero), "its data contradict their sum")
	}
	f.Data = bytes.Clone(data)
	mask(f.Data, seed)
	if sha256.Sum256(f.Data) != [sha256.Size]byte(file[at+48:]) {
		return Frame{}, at, damaged(false, "its data contradict their hash")
	}
	return f, next, nil
}

// ReadAt is Read of a file of a size, of which it reads no more than the record. An error is a BrokenError, or comes
// from reading. A record is Torn only where nothing behind it tells that it was synced.
func ReadAt(file io.ReaderAt, at, size int64) (f Frame, next int64, err error) {
	header := make([]byte, min(HeaderBytes, size-at))
	if _, err := file.ReadAt(header, at); err != nil {
		return f, at, err
	}
	_, _, length, err := readHeader(header, 0)
	if next := at + Size(length); err == nil && next <= size {
		record := make([]byte, Size(length))
		if _, err := file.ReadAt(record, at); err != nil {
			return f, at, err
		}
		if f, _, err = Read(record, 0); err == nil {
			return f, next, nil
		}
	}
	if size-at > Size(MaxData) {
		return Frame{}, at, damaged(false, "no record is whole there, and more follows than one can have")
	}
	first := at - at%sector // so that the parts of sectors are those of the file
	rest := make([]byte, size-first)
	if _, err := file.ReadAt(rest, first); err != nil {
		return Frame{}, at, err
	}
	f, _, err = Read(rest, at-first)
	if why, is := errors.AsType[*BrokenError](err); is && durableAfter(rest, at-first, first) > at {
		why.Torn = false
	}
	return f, at, err
}

// readHeader reads what stands before the data.
func readHeader(file []byte, at int64) (f Frame, seed uint32, length int, err error) {
	if int64(len(file))-at < HeaderBytes {
		return f, 0, 0, short(file[at:], at)
	}
	header := file[at : at+HeaderBytes]
	le := binary.LittleEndian
	length = int(le.Uint32(header[8:]))
	if le.Uint32(header) != magic || crc32.Checksum(header[8:], castagnoli) != le.Uint32(header[4:]) || length > MaxData {
		return f, 0, 0, damaged(hasPart(header, at, isZero), "no record begins there")
	}
	f.Shard = int(int32(le.Uint32(header[16:])))
	f.Number = le.Uint64(header[24:])
	f.Revision = int64(le.Uint64(header[32:]))
	f.Durable = int64(le.Uint64(header[40:]))
	return f, le.Uint32(header[12:]), length, nil
}

// DurableAfter returns the largest offset that the records behind an offset tell to have been synced when they were
// written, be they whole or not; 0 where there are none. A record knows no offset behind its own: what tells one lies
// in the data of a record that an older program wrote.
func DurableAfter(file []byte, at int64) (durable int64) { return durableAfter(file, at, 0) }

// durableAfter is DurableAfter in a piece of a file that begins at an offset.
func durableAfter(piece []byte, at, begins int64) (durable int64) {
	for at++; at < int64(len(piece)); at++ {
		found := bytes.Index(piece[at:], magicBytes)
		if found < 0 {
			break
		}
		at += int64(found)
		if f, _, _, err := readHeader(piece, at); err == nil && f.Durable <= begins+at {
			durable = max(durable, f.Durable)
		}
	}
	return durable
}
