// Package output prints rows: tables for people, JSON for programs.
package output

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"taskledger/events"
)

// Printer writes rows: as a table, or as JSON with one object a line. One goroutine at a time may use it.
type Printer struct {
	json  *json.Encoder // nil: a table
	table *tabwriter.Writer
}

// New begins the output of a command; columns are the headings of a table.
func New(out io.Writer, asJSON bool, columns ...string) *Printer {
	p := &Printer{table: tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)}
	if asJSON {
		p.json = json.NewEncoder(jsonWriter{out})
		p.json.SetEscapeHTML(false)
		return p
	}
	if len(columns) > 0 {
		p.cells(columns)
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
	p.cells(texts)
	return nil
}

func (p *Printer) cells(texts []string) {
	io.WriteString(p.table, strings.TrimRight(strings.Join(texts, "\t"), "\t ")+"\n") // errors come back from Flush
}

// Flush writes what a table has held back to know how wide its columns are.
func (p *Printer) Flush() error { return p.table.Flush() }

// Clean keeps text of tasks, journals and files from steering the terminal, or breaking the table or the line.
func Clean(s string) string {
	return strings.Map(func(r rune) rune {
		if isControl(r) {
			return ' '
		}
		return r
	}, s)
}

// CleanJSON is Clean of JSON text, whose meaning stays: what JSON allows of control characters in its strings is escaped.
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

// Time writes a time, "-" for none. It is in UTC and has the form of RFC 3339, so that flags take what a table shows.
func Time(m events.Millis) string {
	if m == 0 {
		return "-"
	}
	text, _ := m.MarshalText() // it never fails
	return string(text)
}
