package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"taskledger/events"
)

// printer writes rows: as a table, or as JSON with one object a line.
type printer struct {
	json  *json.Encoder // nil: a table
	table *tabwriter.Writer
}

// print begins the output of a command; columns are the headings of a table.
func (a *app) print(columns ...string) *printer {
	p := &printer{table: tabwriter.NewWriter(a.Out, 0, 0, 2, ' ', 0)}
	if a.output == "json" {
		p.json = json.NewEncoder(a.Out)
		p.json.SetEscapeHTML(false)
		return p
	}
	if len(columns) > 0 {
		p.cells(columns)
	}
	return p
}

// row writes v as JSON, or the cells.
func (p *printer) row(v any, cells ...any) error {
	if p.json != nil {
		return p.json.Encode(v)
	}
	texts := make([]string, len(cells))
	for i, c := range cells {
		texts[i] = clean(fmt.Sprint(c))
	}
	p.cells(texts)
	return nil
}

func (p *printer) cells(texts []string) {
	io.WriteString(p.table, strings.TrimRight(strings.Join(texts, "\t"), "\t ")+"\n") // errors come back from flush
}

func (p *printer) flush() error { return p.table.Flush() }

// clean keeps what came from tasks from steering the terminal or breaking the table.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 {
			return ' '
		}
		return r
	}, s)
}

// stamp writes a time for people, "-" for none.
func stamp(m events.Millis) string {
	if m == 0 {
		return "-"
	}
	return m.Time().Local().Format("2006-01-02 15:04:05.000")
}

// raw is payload text as JSON, nil for none.
func raw(p events.Payload) (json.RawMessage, error) {
	text, err := p.JSON()
	return json.RawMessage(text), err
}
