package ui

import (
	"bytes"
	"encoding/json"
	"html/template"
	"strings"
	"unicode/utf8"
)

// Bounds of JSON texts in pages: a task carries 256 KiB, which would be many megabytes with a line for each of its
// innermost members, or a mark around each of its numbers.
const (
	indentRoom = 16 << 10  // bytes that indentation may add beyond the size of the text
	markRoom   = 128 << 10 // bytes that marks may add
	detailSize = 4 << 10   // of what a row of a table shows
	detailRoom = 4 << 10   // bytes that marks may add there
)

// indented returns a JSON text with one member a line. A text that is no JSON, or that would become much larger by
// that, is returned as it is stored.
func indented(text json.RawMessage) string {
	text = stored(text)
	var shown bytes.Buffer
	if !fitsIndented(text, 2*len(text)+indentRoom) || json.Indent(&shown, text, "", "  ") != nil {
		return string(text)
	}
	return shown.String()
}

// stored returns a JSON text without the escapes that the API writes for the sake of HTML, six bytes for one.
func stored(text json.RawMessage) json.RawMessage {
	if !bytes.Contains(text, []byte(`\u00`)) {
		return text
	}
	short := make([]byte, 0, len(text))
	for i := 0; i < len(text); {
		switch rest := text[i:]; {
		case rest[0] != '\\' || len(rest) < 2:
			short = append(short, rest[0])
			i++
		case bytes.HasPrefix(rest, []byte(`\u003c`)):
			short = append(short, '<')
			i += 6
		case bytes.HasPrefix(rest, []byte(`\u003e`)):
			short = append(short, '>')
			i += 6
		case bytes.HasPrefix(rest, []byte(`\u0026`)):
			short = append(short, '&')
			i += 6
		default:
			short = append(short, rest[:2]...)
			i += 2
		}
	}
	return short
}

// fitsIndented reports whether a JSON text with one member a line has so many bytes at most.
func fitsIndented(text []byte, most int) bool {
	size, depth, quoted := len(text), 0, false
	for i := 0; i < len(text) && size <= most; i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{', c == '[':
			depth++
			size += 1 + 2*depth
		case c == '}', c == ']':
			depth = max(depth, 1) - 1
			size += 1 + 2*depth
		case c == ',':
			size += 1 + 2*depth
		case c == ':':
			size++
		}
	}
	return size <= most
}

// clipped returns the beginning of a text, and whether it has left anything out.
func clipped(text string, most int) (begin string, cut bool) {
	if len(text) <= most {
		return text, false
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most], true
}

// plain escapes a text that stands between tags: quotes mean nothing there.
var plain = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "\x00", "\ufffd")

// marked marks the names, strings, numbers and words of a JSON text for the style of pages, until there is no room for
// a further mark.
func marked(text string, room int) template.HTML {
	const mark = len(`<span class="j-k"></span>`)
	var page strings.Builder
	for text != "" {
		size, class := tokenOf(text)
		if room < mark {
			size, class = len(text), ""
		}
		part := plain.Replace(text[:size])
		if class != "" {
			room -= mark
			part = `<span class="j-` + class + `">` + part + `</span>`
		}
		page.WriteString(part)
		text = text[size:]
	}
	return template.HTML(page.String()) //nolint:gosec // each part of it is escaped
}

// tokenOf returns the size of the token with which a JSON text begins, and the class of its mark; "" = it has none.
func tokenOf(text string) (size int, class string) {
	switch c := text[0]; {
	case c == '"':
		size = stringSize(text)
		if strings.HasPrefix(strings.TrimLeft(text[size:min(len(text), size+2)], " "), ":") {
			return size, "k"
		}
		return size, "s"
	case c == '-' || c >= '0' && c <= '9':
		return len(text) - len(strings.TrimLeft(text, "-+.eE0123456789")), "n"
	case c >= 'a' && c <= 'z':
		return len(text) - len(strings.TrimLeft(text, "abcdefghijklmnopqrstuvwxyz")), "w"
	}
	if next := strings.IndexAny(text[1:], `"-0123456789abcdefghijklmnopqrstuvwxyz`); next >= 0 {
		return 1 + next, ""
	}
	return len(text), ""
}

// stringSize returns the size of the string with which a text begins, with its quotes.
func stringSize(text string) int {
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(text)
}

// JSON shows a JSON text with one member a line and marks what it consists of.
func (f *frame) JSON(text json.RawMessage) template.HTML { return marked(indented(text), markRoom) }

// details shows the beginning of a JSON text.
type details struct {
	Text template.HTML
	Cut  bool // there is more
}

// Details shows the beginning of a JSON text, for a table with very many of them. It has marks where something in it is
// written from right to left: they keep that direction within each string, and what lies between two does not turn.
func (f *frame) Details(text json.RawMessage) details {
	begin, cut := clipped(indented(text), detailSize)
	room := 0
	if strings.ContainsFunc(begin, rightToLeft) {
		room = detailRoom
	}
	return details{marked(begin, room), cut}
}

// rightToLeft reports whether a character is of one of the scripts that are written from right to left.
func rightToLeft(r rune) bool {
	return r >= 0x590 && r <= 0x8ff || r >= 0xfb1d && r <= 0xfdff || r >= 0xfe70 && r <= 0xfefe ||
		r >= 0x10800 && r <= 0x10fff || r >= 0x1e800 && r <= 0x1efff
}
