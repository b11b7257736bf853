package tasklog

import (
	"fmt"
	"math"
	"unicode/utf8"

	"taskledger/events"
	"taskledger/store"
)

const (
	// MaxLineBytes bounds the text of a line, and MaxBatchBytes that of all lines of a batch.
	MaxLineBytes  = 16 << 10
	MaxBatchBytes = 64 << 10
	// MaxBatchLines bounds the lines of a batch.
	MaxBatchLines = 500
	// MaxLines and MaxBytes bound the log of an attempt; its writer trims it before it grows beyond them.
	MaxLines = 100_000
	MaxBytes = 10 << 20
	// MaxAttempts bounds the attempts of a task that have a log: the newest ones do.
	MaxAttempts = 10
)

// Attempt names the log of one attempt.
type Attempt struct {
	Shard  uint16
	Life   events.Ref // of the Created of the task, never 0
	Number uint32     // 1, 2, 3 ... within the life
}

// Level says how much a line matters. Levels have an order.
type Level uint8

// The levels are stored by number.
const (
	Info Level = iota
	Error
)

// String returns the name of a level.
func (l Level) String() string {
	switch l {
	case Info:
		return "info"
	case Error:
		return "error"
	}
	return fmt.Sprintf("level %d", uint8(l))
}

// ParseLevel reads what String returns.
func ParseLevel(name string) (Level, error) {
	for l := range Error + 1 {
		if name == l.String() {
			return l, nil
		}
	}
	return 0, fmt.Errorf("level %.32q: want %s or %s", name, Info, Error)
}

// Line is a line of a log.
type Line struct {
	At    events.Millis // when it was written, by the clock of its node; never before the line before it
	Level Level
	Text  string // UTF-8, without an end of line
}

// Batch is consecutive lines of an attempt, which are stored together.
type Batch struct {
	First uint64 // number of the first line
	Lines []Line // at least one
}

// Last returns the number of the last line.
func (b Batch) Last() uint64 { return b.First + uint64(len(b.Lines)) - 1 }

// Bytes returns the bytes of text in all lines.
func (b Batch) Bytes() (n int) {
	for i := range b.Lines {
		n += len(b.Lines[i].Text)
	}
	return n
}

// End is a place in a log, behind a batch. The zero value is the end of an empty log.
type End struct {
	Line  uint64 // number of the last line of the batch
	Place uint64 // where the store keeps the batch; it grows from batch to batch, unless the store has lost all
}

// Whole stands for an end behind every batch: Store.Trim up to it leaves nothing.
var Whole = End{Line: math.MaxUint64, Place: math.MaxUint64}

// Check returns an error that wraps store.ErrRefused and names the field, if a names no attempt.
func (a Attempt) Check() error {
	switch {
	case a.Life == 0:
		return refused("life", "0, want that of a Created")
	case a.Number == 0:
		return refused("attempt", "0, want 1 or more")
	}
	return nil
}

// CheckAppend returns an error that wraps store.ErrRefused and names the field, if a batch breaks a rule.
func CheckAppend(of Attempt, after End, b Batch) error {
	if err := of.Check(); err != nil {
		return err
	}
	switch n := len(b.Lines); {
	case n == 0 || n > MaxBatchLines:
		return refused("lines", "%d, want 1 to %d", n, MaxBatchLines)
	case b.First <= after.Line:
		return refused("first", "line %d, and the log ends with line %d", b.First, after.Line)
	case b.First > math.MaxUint64-MaxBatchLines:
		return refused("first", "line %d, want %d at most", b.First, uint64(math.MaxUint64-MaxBatchLines))
	case b.Bytes() > MaxBatchBytes:
		return refused("lines", "%d bytes of text, want %d at most", b.Bytes(), MaxBatchBytes)
	}
	var before events.Millis
	for i, l := range b.Lines {
		number := b.First + uint64(i)
		switch {
		case len(l.Text) > MaxLineBytes:
			return refused("text", "line %d has %d bytes, want %d at most", number, len(l.Text), MaxLineBytes)
		case !utf8.ValidString(l.Text):
			return refused("text", "line %d is no UTF-8", number)
		case l.Level > Error:
			return refused("level", "line %d has %s, want %d at most", number, l.Level, Error)
		case l.At < before:
			return refused("at", "line %d has %d ms, which is before the line before it", number, l.At)
		}
		before = l.At
	}
	return nil
}

func refused(field, format string, args ...any) error {
	problem := &events.InvalidError{Field: field, Problem: fmt.Sprintf(format, args...)}
	return fmt.Errorf("%w: %w", store.ErrRefused, problem)
}
