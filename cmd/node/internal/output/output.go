// Package output prints rows: tables for people, JSON for programs.
package output

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"taskledger/events"
)

// widest bounds the width of a column, in characters. A longer text shifts the rest of its own row, and no other row.
const widest = 64

// Printer writes rows: as a table, or as JSON with one object a line. One goroutine at a time may use it.
type Printer struct {
	json *json.Encoder // nil: a table
	out  io.Writer
	held [][]string // rows of the table that are to be written
}

// New begins the output of a command; columns are the headings of a table.
func New(out io.Writer, asJSON bool, columns ...string) *Printer {
	p := &Printer{out: out}
	if asJSON {
		p.json = json.NewEncoder(jsonWriter{out})
		p.json.SetEscapeHTML(false)
		return p
	}
	if len(columns) > 0 {
		p.held = append(p.held, columns)
	}
	return p
}

// IsJSON reports that the cells of rows are not written.
func (p *Printer) IsJSON() bool { return p.json != nil }

// Row writes v as JSON, or the cells. An error of a table comes back from Flush.
func (p *Printer) Row(v any, cells ...any) error {
	if p.json != nil {
		return p.json.Encode(v)
	}
	texts := make([]string, len(cells))
	for i, c := range cells {
		texts[i] = Clean(fmt.Sprint(c))
	}
	p.held = append(p.held, texts)
	return nil
}

// Flush writes what a table has held back to know how wide its columns are.
func (p *Printer) Flush() error {
	if len(p.held) == 0 {
		return nil
	}
	var widths []int
	for _, row := range p.held {
		for i, text := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			if n := utf8.RuneCountInString(text); n <= widest {
				widths[i] = max(widths[i], n)
			}
		}
	}
	var table, line strings.Builder
	for _, row := range p.held {
		line.Reset()
		for i, text := range row {
			fmt.Fprintf(&line, "%-*s  ", widths[i], text)
		}
		table.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	p.held = nil
	_, err := io.WriteString(p.out, table.String())
	return err
}

// Clean keeps text of tasks, journals and files from steering the terminal, or breaking the table or the line.
func Clean(s string) string {
	return strings.Map(func(r rune) rune {
		if isControl(r) {
			return ' '
		}
		return r
	}, s)
}

// CleanJSON is Clean of JSON text, whose meaning stays: what JSON allows of control characters in its strings is
// escaped.
func CleanJSON(text []byte) []byte {
	if !bytes.ContainsFunc(text, steers) {
		return text
	}
	var b bytes.Buffer
	for _, r := range string(text) {
		if steers(r) {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.Bytes()
}

func isControl(r rune) bool { return r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 }

// steers is isControl but for the white space of JSON.
func steers(r rune) bool { return isControl(r) && r != '\n' && r != '\t' && r != '\r' }

// jsonWriter passes JSON text on, cleaned. A call brings whole characters.
type jsonWriter struct{ to io.Writer }

func (w jsonWriter) Write(text []byte) (int, error) {
	if _, err := w.to.Write(CleanJSON(text)); err != nil {
		return 0, err
	}
	return len(text), nil
}

// Time writes a time, "-" for none: in local time with its zone, in the form of RFC 3339, so that flags take what a
// table shows.
func Time(m events.Millis) string { return timeIn(time.Local, m) }

func timeIn(zone *time.Location, m events.Millis) string {
	if m == 0 {
		return "-"
	}
	return m.Time().In(zone).Format("2006-01-02T15:04:05.000Z07:00")
}
