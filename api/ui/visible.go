package ui

import (
	"bytes"
	"fmt"
	"unicode/utf8"
)

// visible writes the characters of the texts of a page that nobody sees as text, such as \x1b: a terminal would obey
// some of them, and others would turn the text around. Those that strings of JSON may hold get the escape of JSON, so
// that who copies JSON has the same value. Who copies any other text has the form that is written, and cannot tell it
// from a text that had that form already. html/template has made U+FFFD of U+0000. Forms send back the same values.
func visible(page []byte) []byte {
	if !bytes.ContainsFunc(page, unseen) {
		return page
	}
	shown := make([]byte, 0, len(page)+len(page)/8)
	tag, area := false, false // the place is within a tag, or within the text of a textarea
	for len(page) > 0 {
		r, size := utf8.DecodeRune(page)
		switch {
		case r == '<':
			tag, area = true, bytes.HasPrefix(page, []byte("<textarea"))
		case r == '>':
			tag = false
		}
		switch {
		case bytes.HasPrefix(page, []byte("\r\n")), !unseen(r):
			shown = append(shown, page[:size]...)
		case !tag && !area:
			shown = fmt.Appendf(shown, escapeOf(r), r)
		case r < ' ' && r != '\r' || r == 0x7f:
			shown = fmt.Appendf(shown, "&#%d;", r)
		default:
			shown = append(shown, page[:size]...)
		}
		page = page[size:]
	}
	return shown
}

// unseen reports whether a character is one of control, or turns the direction of text. Letters of a script that is
// written from right to left are none.
func unseen(r rune) bool {
	switch {
	case r == '\n', r == '\t':
		return false
	case r < ' ', r >= 0x7f && r <= 0x9f:
		return true
	case r < 0x61c:
		return false
	}
	return r == 0x61c || r == 0x200e || r == 0x200f || r == 0xfeff ||
		r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069
}

// escapeOf returns the form in which a character is written. No string of JSON holds one below U+0020.
func escapeOf(r rune) string {
	if r < ' ' {
		return `\x%02x`
	}
	return `\u%04x`
}
