package tasklog

import (
	"context"
	"fmt"
	"time"

	"taskledger/events"
)

const (
	// MaxPageLines bounds the lines of a page.
	MaxPageLines = 1000
	// pageBytes of text end a page behind the line that reaches them.
	pageBytes = 1 << 20
	// pageReads of text end a page that finds few lines, behind the stretch that reaches them. A batch counts for
	// batchReads more, so that a page takes some 1,000 small batches.
	pageReads  = 4 << 20
	batchReads = 4 << 10
)

// Begun is an attempt of a task, as its history tells.
type Begun struct {
	Number uint32
	At     events.Millis // when it began
}

// Query selects lines of a task.
type Query struct {
	Shard    uint16
	Life     events.Ref // of the Created of the task
	Attempts []Begun    // in their order; of more than MaxAttempts the newest count

	Since events.Millis // inclusive
	Until events.Millis // inclusive; 0 = without an end
	Level Level         // lines of lower levels are left out; Info = none
	After Cursor        // the zero value = from the beginning
	Limit int           // lines of a page, 1 to MaxPageLines; 0 = MaxPageLines
}

// Cursor is a place in the log of a task. The zero value is its beginning.
type Cursor struct {
	Attempt uint32
	Line    uint64 // number of the next line; 0 = the first one, and what is missing before it has not been told
}

// TaskLine is a line of a task.
type TaskLine struct {
	Attempt uint32
	Number  uint64 // of a gap that of its last line; 0 = it is not known which lines are missing
	Missing uint64 // 0 = this is no gap; else how many lines are missing, 1 where that is not known
	Line
}

// Page is a part of the log of a task.
type Page struct {
	Lines []TaskLine
	Next  Cursor // where the next page begins, also where this one reaches the end: what is written later comes there
	More  bool   // the end has not been reached
}

// ReadTask returns lines of a task: those of its attempts one after the other, the oldest first, each in order of
// the numbers. Lines that are missing are told by a line of level Error, which has the time of the line behind the
// gap: the numbers show them. Of an attempt without any lines it is told that some may be missing, if it began
// before the oldest of what the store has. Missing lines at the end of an attempt show nowhere else.
//
// A page has fewer lines than Limit also beyond 1 MiB of text, and where 4 MiB, or some 1,000 batches, had to be read
// for it: none at all, perhaps. An error wraps events.InvalidError, which names a field of q, or is that of the reader.
func ReadTask(ctx context.Context, from Reader, q Query) (Page, error) {
	p, err := newPager(q)
	if err != nil {
		return Page{}, fmt.Errorf("read log: %w", err)
	}
	reads := 0
	for _, a := range q.Attempts[max(len(q.Attempts)-MaxAttempts, 0):] {
		if a.Number < p.page.Next.Attempt {
			continue
		}
		if a.Number > p.page.Next.Attempt {
			p.page.Next = Cursor{Attempt: a.Number}
		}
		for more := true; more; {
			if reads >= pageReads {
				p.page.More = true
				return p.page, nil
			}
			s, err := from.Read(ctx, Attempt{q.Shard, q.Life, a.Number}, Range{
				From:  p.page.Next.Line,
				Since: q.Since,
				Until: q.Until,
			})
			if err != nil {
				return Page{}, fmt.Errorf("read log: %w", err)
			}
			if !p.take(a, s) {
				p.page.More = true
				return p.page, nil
			}
			for _, b := range s.Batches {
				reads += b.Bytes() + batchReads
			}
			more = s.More
		}
	}
	return p.page, nil
}

// pager makes a page of what was read.
type pager struct {
	q     Query
	page  Page
	bytes int // of text in the page
}

func newPager(q Query) (*pager, error) {
	invalid := func(field, format string, args ...any) error {
		return &events.InvalidError{Field: field, Problem: fmt.Sprintf(format, args...)}
	}
	if q.Limit == 0 {
		q.Limit = MaxPageLines
	}
	if q.Limit < 1 || q.Limit > MaxPageLines {
		return nil, invalid("limit", "%d, want 1 to %d", q.Limit, MaxPageLines)
	}
	if q.Level > Error {
		return nil, invalid("level", "%s, want %s or %s", q.Level, Info, Error)
	}
	for i := 1; i < len(q.Attempts); i++ {
		if q.Attempts[i].Number <= q.Attempts[i-1].Number {
			return nil, invalid("attempts", "%d follows %d", q.Attempts[i].Number, q.Attempts[i-1].Number)
		}
	}
	return &pager{q: q, page: Page{Next: q.After}}, nil
}

// take adds the lines of a stretch of an attempt, and reports whether the page has room for more.
func (p *pager) take(a Begun, s Stretch) bool {
	next := &p.page.Next
	lost := s.Last == 0 && next.Line == 0 && a.At < s.Oldest && p.until(a.At) && s.Oldest >= p.q.Since
	if lost && !p.add(unknown(a, s.Oldest, p.q.Since)) {
		return false
	}
	next.Line = max(next.Line, s.Before+1)
	for _, b := range s.Batches {
		for i, l := range b.Lines {
			number := b.First + uint64(i)
			switch {
			case number < next.Line:
				continue
			case !p.until(l.At):
				return true
			case l.At >= p.q.Since && number > next.Line:
				if !p.add(gap(a.Number, next.Line, number, l.At)) {
					return false
				}
				next.Line = number
			}
			wanted := l.At >= p.q.Since && l.Level >= p.q.Level
			if wanted && !p.add(TaskLine{Attempt: a.Number, Number: number, Line: l}) {
				return false
			}
			next.Line = number + 1
		}
	}
	return true
}

// until reports whether a time is not behind the range.
func (p *pager) until(at events.Millis) bool { return p.q.Until == 0 || at <= p.q.Until }

// add reports whether there was room for the line.
func (p *pager) add(l TaskLine) bool {
	if len(p.page.Lines) >= p.q.Limit || p.bytes >= pageBytes {
		return false
	}
	p.page.Lines = append(p.page.Lines, l)
	p.bytes += len(l.Text)
	return true
}

// gap tells that the lines of an attempt from one number up to another are missing.
func gap(attempt uint32, from, to uint64, at events.Millis) TaskLine {
	why := "written faster than the log takes them, or while it was away"
	if from == 1 {
		why = "beyond the bounds of the log, or " + why
	}
	n := to - from
	text := fmt.Sprintf("%d lines are missing: %s", n, why)
	if n == 1 {
		text = "1 line is missing: " + why
	}
	return TaskLine{Attempt: attempt, Number: to - 1, Missing: n, Line: Line{at, Error, text}}
}

// unknown tells that lines of an attempt may be missing.
func unknown(a Begun, oldest, since events.Millis) TaskLine {
	text := "lines may be missing: the log has nothing from before " + oldest.Time().Format(time.RFC3339Nano)
	return TaskLine{Attempt: a.Number, Missing: 1, Line: Line{max(a.At, since), Error, text}}
}
