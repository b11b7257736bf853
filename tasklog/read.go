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
	// Late says that lines of earlier attempts may still come: Page.Next notes where these end, and a page begins
	// with what has come since.
	Late bool
}

// Cursor is a place in the log of a task. The zero value is its beginning.
type Cursor struct {
	Place
	Behind []Place // where earlier attempts have ended so far, of which lines may still come; MaxAttempts-1 at most
	Told   bool    // a reader was told that lines may be missing, and no line has been found since
}

// Place is a place in the log of an attempt.
type Place struct {
	Attempt uint32
	Line    uint64 // number of the next line; 0 = the first one
}

// TaskLine is a line of a task.
type TaskLine struct {
	Attempt uint32
	Number  uint64 // of a gap that of its last line; 0 = it is not known which lines are missing
	Missing uint64 // 0 = this is no gap; else how many lines are missing, 1 where that is not known
	Line
}

// Page holds a part of the log of a task, as ReadTask returns it.
type Page struct {
	Lines []TaskLine
	Next  Cursor // where the next page begins, also where this one reaches the end: what is written later comes there
	More  bool   // the end has not been reached
}

// ReadTask returns lines of a task: those of its attempts one after the other, the oldest first, each in order of
// the numbers. Lines that are missing are told by a line of level Error, which has the time of the line behind the
// gap: the numbers show them, those of Writer.Mark at the end of an attempt, too. That some may be missing is told
// of the first attempt without any lines that began before the oldest of what the store has, or whose lines have
// been removed since Query.After passed them; it is told once, until something is found again.
//
// A page has fewer lines than Limit also beyond 1 MiB of text, and where 4 MiB, or some 1,000 batches, had to be read
// for it: none at all, perhaps. An error wraps events.InvalidError, which names a field of q, or is that of the reader.
func ReadTask(ctx context.Context, from Reader, q Query) (Page, error) {
	p, err := newPager(q)
	if err != nil {
		return Page{}, fmt.Errorf("read log: %w", err)
	}
	for _, a := range p.q.Attempts {
		at, is := q.After.at(a.Number)
		if !is {
			continue
		}
		room, err := p.read(ctx, from, a, &at)
		if err != nil {
			return Page{}, fmt.Errorf("read log: %w", err)
		}
		if !room {
			return p.full(at), nil
		}
		p.passed = append(p.passed, at)
	}
	return p.end(), nil
}

// at returns where to go on in an attempt, if it is one to go on in.
func (c *Cursor) at(attempt uint32) (at Place, is bool) {
	switch {
	case attempt > c.Attempt:
		return Place{Attempt: attempt}, true
	case attempt == c.Attempt:
		return c.Place, true
	}
	for _, at := range c.Behind {
		if at.Attempt == attempt {
			return at, true
		}
	}
	return at, false
}

// pager makes a page of what was read.
type pager struct {
	q      Query
	page   Page
	bytes  int     // of text in the page
	reads  int     // of text that was read for it, and what counts as such
	passed []Place // the ends of the attempts that were read
}

// read adds the lines of an attempt from a place on, which it moves, and reports whether the page has room for more.
func (p *pager) read(ctx context.Context, from Reader, a Begun, at *Place) (room bool, err error) {
	for more := true; more; {
		if p.reads >= pageReads {
			return false, nil
		}
		s, err := from.Read(ctx, Attempt{p.q.Shard, p.q.Life, a.Number}, Range{
			From:  at.Line,
			Since: p.q.Since,
			Until: p.q.Until,
		})
		if err != nil || !p.take(a, s, at) {
			return false, err
		}
		for _, b := range s.Batches {
			p.reads += b.Bytes() + batchReads
		}
		more = s.More
	}
	return true, nil
}

// full ends the page within an attempt.
func (p *pager) full(at Place) Page {
	next := &p.page.Next
	p.page.More = true
	if p.q.Late {
		next.Behind = p.passed
	}
	if at.Attempt >= p.q.After.Attempt {
		next.Place = at
		return p.page
	}
	next.Behind = append(next.Behind, at)
	for _, later := range p.q.After.Behind {
		if later.Attempt > at.Attempt {
			next.Behind = append(next.Behind, later)
		}
	}
	return p.page
}

// end ends the page behind the last attempt.
func (p *pager) end() Page {
	next, earlier := &p.page.Next, p.passed
	if n := len(earlier); n > 0 && earlier[n-1].Attempt >= next.Attempt {
		next.Place, earlier = earlier[n-1], earlier[:n-1]
	}
	if p.q.Late {
		next.Behind = earlier
	}
	return p.page
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
	q.Attempts = q.Attempts[max(len(q.Attempts)-MaxAttempts, 0):]
	return &pager{q: q, page: Page{Next: Cursor{Place: q.After.Place, Told: q.After.Told}}}, nil
}

// take adds the lines of a stretch of an attempt, and reports whether the page has room for more.
func (p *pager) take(a Begun, s Stretch, next *Place) bool {
	if s.Last == 0 && p.loses(a, s, next) {
		if !p.add(unknown(a, s.Oldest, &p.q)) {
			return false
		}
		p.page.Next.Told = true
	}
	next.Line = max(next.Line, s.Before+1)
	for _, b := range s.Batches {
		p.page.Next.Told = false
		for i, l := range b.Lines {
			number := b.First + uint64(i)
			switch {
			case number < next.Line:
				continue
			case !p.until(l.At):
				return true
			case l.At >= p.q.Since && number > next.Line:
				if !p.add(gap(a.Number, next.Line, number, l.At, s.Before == 0 && number == s.Batches[0].First)) {
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

// loses reports whether an attempt of which the store has nothing may have had lines in the range that were not told.
func (p *pager) loses(a Begun, s Stretch, next *Place) bool {
	was := next.Line > 1 || a.At < s.Oldest
	return was && !p.page.Next.Told && p.until(a.At) && (s.Oldest == 0 || s.Oldest >= p.q.Since)
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

// These are the causes of a gap, as far as a reader can tell them apart.
var (
	untaken = "written faster than the log takes them, or while it was away"
	removed = fmt.Sprintf("older than the newest %d lines or %d MiB of an attempt, or not kept by the store any more",
		MaxLines, MaxBytes>>20)
)

// gap tells that the lines of an attempt from one number up to another are missing. first says that the log begins
// with line to: what was read before from has been removed since.
func gap(attempt uint32, from, to uint64, at events.Millis, first bool) TaskLine {
	why := untaken
	switch { // with from 1 it is not known whether lines were ever there
	case first && from > 1:
		why = removed
	case first:
		why = removed + ", or " + untaken
	}
	n := to - from
	text := fmt.Sprintf("%d lines are missing: %s", n, why)
	if n == 1 {
		text = "1 line is missing: " + why
	}
	return TaskLine{Attempt: attempt, Number: to - 1, Missing: n, Line: Line{at, Error, text}}
}

// unknown tells that lines of an attempt may be missing.
func unknown(a Begun, oldest events.Millis, q *Query) TaskLine {
	text := "lines may be missing: the log was removed"
	if oldest > 0 {
		text = "lines may be missing: the log has nothing from before " + oldest.Time().Format(time.RFC3339Nano)
	}
	return TaskLine{Attempt: a.Number, Missing: 1, Line: Line{max(a.At, q.Since), Error, text}}
}
