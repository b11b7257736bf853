package filelogs

import (
	"encoding/binary"
	"errors"
	"math"

	"taskledger/events"
	"taskledger/filestore/internal/frame"
	"taskledger/tasklog"
)

// The kinds of records, by the first byte of their data.
const (
	kindBatch  = 1
	kindTrim   = 2
	kindForget = 3
)

var errRecord = errors.New("the record is corrupt")

// removal says what a record removes: of one attempt the batches up to a place, or of a life the attempts below one.
type removal struct {
	life    events.Ref
	attempt uint32 // 0 = of all attempts
	upTo    uint64 // place, of an attempt
	before  uint32 // attempt, of a life; 0 = all
}

// encodeBatch returns the data of the record of a batch.
func encodeBatch(of tasklog.Attempt, b tasklog.Batch) []byte {
	data := make([]byte, 0, b.Bytes()+8*len(b.Lines)+64)
	data = append(data, kindBatch)
	for _, n := range []uint64{uint64(of.Life), uint64(of.Number), b.First, uint64(len(b.Lines))} {
		data = binary.AppendUvarint(data, n)
	}
	var before events.Millis
	for _, line := range b.Lines {
		data = binary.AppendUvarint(data, uint64(line.At-before))
		data = binary.AppendUvarint(data, uint64(line.Level))
		data = binary.AppendUvarint(data, uint64(len(line.Text)))
		data = append(data, line.Text...)
		before = line.At
	}
	return data
}

// encodeRemoval returns the data of the record of a removal.
func encodeRemoval(r removal) []byte {
	if r.attempt == 0 {
		data := binary.AppendUvarint([]byte{kindForget}, uint64(r.life))
		return binary.AppendUvarint(data, uint64(r.before))
	}
	data := binary.AppendUvarint([]byte{kindTrim}, uint64(r.life))
	data = binary.AppendUvarint(data, uint64(r.attempt))
	return binary.AppendUvarint(data, r.upTo)
}

// reader takes values off the data of a record.
type reader struct {
	data []byte
	bad  bool
}

func (r *reader) uint(most uint64) uint64 {
	n, size := binary.Uvarint(r.data)
	if size <= 0 || n > most {
		r.bad, r.data = true, nil
		return 0
	}
	r.data = r.data[size:]
	return n
}

func (r *reader) text(size uint64) string {
	if size > uint64(len(r.data)) {
		r.bad, r.data = true, nil
		return ""
	}
	text := string(r.data[:size])
	r.data = r.data[size:]
	return text
}

// decodeBatch reads what encodeBatch returned.
func decodeBatch(f frame.Frame) (of tasklog.Attempt, b tasklog.Batch, err error) {
	r := &reader{data: f.Data[1:]}
	of = tasklog.Attempt{
		Shard:  uint16(f.Shard),
		Life:   events.Ref(r.uint(math.MaxUint64)),
		Number: uint32(r.uint(math.MaxUint32)),
	}
	b.First = r.uint(math.MaxUint64)
	lines := r.uint(tasklog.MaxBatchLines)
	var before events.Millis
	for range lines {
		line := tasklog.Line{At: before + events.Millis(r.uint(math.MaxInt64))}
		line.Level = tasklog.Level(r.uint(math.MaxUint8))
		line.Text = r.text(r.uint(tasklog.MaxLineBytes))
		b.Lines = append(b.Lines, line)
		before = line.At
	}
	if r.bad || len(r.data) > 0 || len(b.Lines) == 0 || f.Data[0] != kindBatch {
		return of, b, errRecord
	}
	return of, b, nil
}

// decodeRemoval reads what encodeRemoval returned.
func decodeRemoval(f frame.Frame) (removal, error) {
	r := &reader{data: f.Data[1:]}
	is := removal{life: events.Ref(r.uint(math.MaxUint64))}
	switch f.Data[0] {
	case kindTrim:
		is.attempt = uint32(r.uint(math.MaxUint32))
		is.upTo = r.uint(math.MaxUint64)
		r.bad = r.bad || is.attempt == 0
	case kindForget:
		is.before = uint32(r.uint(math.MaxUint32))
	default:
		r.bad = true
	}
	if r.bad || len(r.data) > 0 {
		return is, errRecord
	}
	return is, nil
}
