package tasklog

import (
	"bytes"
	"strings"
	"time"
	"unicode/utf8"
)

// cutMark ends a line that was longer than MaxLineBytes.
const cutMark = " [cut]"

// flushAfter is the time after which text without an end of line becomes a line.
const flushAfter = time.Second

// splitter makes lines of a text that comes in pieces. Lines end with LF or CR LF. The zero value is ready.
type splitter struct {
	text  []byte    // what has come of the line
	since time.Time // when its first byte came
	cut   bool      // the line was handed out at its limit: what comes up to its end does not count
	told  bool      // the beginning of the line was handed out: an end alone makes no further line
}

// take consumes p up to the first end of a line, and returns that line where it is one.
func (s *splitter) take(now time.Time, p []byte) (rest []byte, line string, whole bool) {
	piece, rest, ended := bytes.Cut(p, []byte{'\n'})
	if len(s.text) == 0 {
		s.since = now
	}
	if !s.cut {
		s.text = append(s.text, piece[:min(len(piece), MaxLineBytes+2-len(s.text))]...) // CR, and a byte too many
	}
	switch {
	case ended:
		text := bytes.TrimSuffix(s.text, []byte{'\r'})
		if !s.cut && (len(text) > 0 || !s.told) {
			line, whole = clean(text), true
		}
		*s = splitter{text: s.text[:0]}
	case len(s.text) > MaxLineBytes+1:
		line, whole = clean(s.text), true
		*s = splitter{text: s.text[:0], cut: true}
	}
	return rest, line, whole
}

// due returns when flush is to be called; the zero time = not before more has come.
func (s *splitter) due() time.Time {
	if len(s.text) == 0 {
		return time.Time{}
	}
	return s.since.Add(flushAfter)
}

// flush hands out the text that has no end. What may be half of a rune or of an end of line stays once, unless it
// is the last text.
func (s *splitter) flush(now time.Time, last bool) (line string, is bool) {
	n := len(s.text)
	if n == 0 {
		return "", false
	}
	if half := unfinished(s.text); half < n && !last {
		n -= half
	}
	text := s.text[:n]
	if text := bytes.TrimSuffix(text, []byte{'\r'}); len(text) > 0 || !s.told {
		line, is = clean(text), true
	}
	*s = splitter{text: append(s.text[:0], s.text[n:]...), since: now, told: s.told || is}
	return line, is
}

// unfinished returns the length of a CR or the beginning of a rune at the end of text.
func unfinished(text []byte) int {
	if bytes.HasSuffix(text, []byte{'\r'}) {
		return 1
	}
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if end := text[len(text)-n:]; utf8.RuneStart(end[0]) {
			if utf8.FullRune(end) {
				return 0
			}
			return n
		}
	}
	return 0
}

// clean returns text as UTF-8 that fits a line.
func clean(text []byte) string {
	line := strings.ToValidUTF8(string(text), "\uFFFD")
	if len(line) <= MaxLineBytes {
		return line
	}
	n := MaxLineBytes - len(cutMark)
	for !utf8.RuneStart(line[n]) {
		n--
	}
	return line[:n] + cutMark
}
