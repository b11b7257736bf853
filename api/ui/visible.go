package ui

import (
	"bytes"
	"fmt"
	"unicode/utf16"
	"unicode/utf8"
)

// visible writes the characters of the texts of a page that nobody sees as text, such as \x1b: a terminal would obey
// some of them, and others would turn the text around. Those that strings of JSON may hold get the escape of JSON, so
// that copied JSON has the same value. Any other copied text has the written form, which cannot be told from a text
// that had that form already. html/template has made U+FFFD of U+0000. Forms send back the same values.
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
			shown = appendEscape(shown, r)
		case r < ' ' && r != '\r' || r == 0x7f:
			shown = fmt.Appendf(shown, "&#%d;", r)
		default:
			shown = append(shown, page[:size]...)
		}
		page = page[size:]
	}
	return shown
}

// unseen reports whether a character is one of control, turns the direction of text, or is nothing that anybody sees.
// Letters of a script that is written from right to left are none, nor are U+200C and U+200D, which belong to the
// letters and emoji that they join, and the selectors of variants.
func unseen(r rune) bool {
	switch {
	case r == '\n', r == '\t':
		return false
	case r < ' ', r >= 0x7f && r <= 0x9f, r == 0xad: // a soft hyphen
		return true
	case r < 0x34f:
		return false
	}
	return r == 0x34f || r == 0x61c || r == 0x180e || r == 0x200b || r == 0x200e || r == 0x200f || r == 0xfeff ||
		r >= 0x2028 && r <= 0x202e || // separators of lines and paragraphs, embeddings and overrides
		r >= 0x2060 && r <= 0x206f || // invisible operators, isolates, and controls that are no longer used
		r == 0x115f || r == 0x1160 || r == 0x3164 || r == 0xffa0 || // fillers of Hangul
		r == 0x17b4 || r == 0x17b5 || r == 0x2800 || // vowels of Khmer that are not written, and Braille without a dot
		r >= 0xe0000 && r <= 0xe007f // tags
}

// appendEscape appends the form in which a character is written. No string of JSON holds one below U+0020; one above
// U+FFFF has two escapes there.
func appendEscape(to []byte, r rune) []byte {
	if r < ' ' {
		return fmt.Appendf(to, `\x%02x`, r)
	}
	for _, unit := range utf16.AppendRune(nil, r) {
		to = fmt.Appendf(to, `\u%04x`, unit)
	}
	return to
}
