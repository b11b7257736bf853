package natsbus

import (
	"bytes"
	"fmt"
	"strconv"

	"github.com/klauspost/compress/s2"
	"github.com/nats-io/nats.go"

	"taskledger/events"
	"taskledger/internal/wire"
	"taskledger/tasklog"
)

// The headers of a batch of a log, beside firstHeader and lastHeader.
const (
	sinceHeader = "Taskledger-Since"
	untilHeader = "Taskledger-Until"
)

// logVersion is the first value of a batch's body.
const logVersion = 1

// logSpan is the lines of a batch, as its headers tell.
type logSpan struct {
	span
	since, until events.Millis
}

// logged is a batch in the stream.
type logged struct {
	sequence uint64
	logSpan
	data []byte
}

// packLog is the body of a batch. A line has the time since the line before it, the first one since 1970.
func packLog(of tasklog.Attempt, b tasklog.Batch) []byte {
	w := wire.Writer{B: make([]byte, 0, b.Bytes()+16*len(b.Lines)+64)}
	w.Array(6)
	w.Uint(logVersion)
	w.Uint(uint64(of.Shard))
	w.Uint(uint64(of.Life))
	w.Uint(uint64(of.Number))
	w.Uint(b.First)
	w.Array(len(b.Lines))
	var before events.Millis
	for _, l := range b.Lines {
		w.Array(3)
		w.Uint(uint64(l.At - before))
		w.Uint(uint64(l.Level))
		w.Text(l.Text)
		before = l.At
	}
	return w.B
}

// logMessage is a batch on its way to the stream.
func logMessage(subject string, b tasklog.Batch, body []byte) *nats.Msg {
	decimal := func(n int64) []string { return []string{strconv.FormatInt(n, 10)} }
	return &nats.Msg{Subject: subject, Data: s2.Encode(nil, body), Header: nats.Header{
		firstHeader: {strconv.FormatUint(b.First, 10)},
		lastHeader:  {strconv.FormatUint(b.Last(), 10)},
		sinceHeader: decimal(int64(b.Lines[0].At)),
		untilHeader: decimal(int64(b.Lines[len(b.Lines)-1].At)),
	}}
}

// asLogged reads the headers of a message. It wraps events.ErrDamaged.
func asLogged(m *stored) (*logged, error) {
	lines, err := readSpan(m.header)
	if err != nil {
		return nil, err
	}
	l := &logged{sequence: m.sequence, logSpan: logSpan{span: lines}, data: m.data}
	for header, to := range map[string]*events.Millis{sinceHeader: &l.since, untilHeader: &l.until} {
		at, err := strconv.ParseInt(m.header.Get(header), 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%w: header %s: %w", events.ErrDamaged, header, err)
		}
		*to = events.Millis(at)
	}
	return l, nil
}

// sameLog reports whether a message has this body. Its bytes may differ: compressors do.
func sameLog(m *stored, body []byte) bool {
	there, err := unpack(m.data)
	return err == nil && bytes.Equal(there, body)
}

// batch returns the lines of a message, in memory of their own. It fails where the message is no batch of the
// attempt.
func (l *logged) batch(of tasklog.Attempt) (tasklog.Batch, error) {
	body, err := unpack(l.data)
	if err == nil {
		err = wire.Scan(body)
	}
	if err != nil {
		return tasklog.Batch{}, err
	}
	r := wire.NewReader(body)
	r.ArrayOf(6)
	if v := r.Uint(); v != logVersion {
		r.Fail("log version %d", v)
	}
	is := [...]uint64{r.Uint(), r.Uint(), r.Uint(), r.Uint()}
	if want := [...]uint64{uint64(of.Shard), uint64(of.Life), uint64(of.Number), l.first}; is != want {
		r.Fail("it is of %d, want %d", is, want)
	}
	n := r.Array()
	if want := l.last - l.first + 1; n > tasklog.MaxBatchLines || uint64(n) != want {
		r.Fail("it has %d lines, want %d", n, want)
	}
	b := tasklog.Batch{First: l.first}
	var at events.Millis
	for i := 0; i < n && r.Err() == nil; i++ {
		r.ArrayOf(3)
		at += events.Millis(r.Uint())
		b.Lines = append(b.Lines, tasklog.Line{At: at, Level: tasklog.Level(r.Uint()), Text: r.Text()})
	}
	if err := r.Close(); err != nil {
		return tasklog.Batch{}, err
	}
	return b, tasklog.CheckAppend(of, tasklog.End{}, b)
}
