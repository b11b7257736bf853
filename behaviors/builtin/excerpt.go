package builtin

import "unicode/utf8"

// excerptBytes bounds the bytes that are kept of each output of a program, and of a response's body.
const excerptBytes = 64 << 10

// tail keeps the last excerptBytes of what is written to it.
type tail struct {
	kept []byte
	cut  bool
}

// Write never fails.
func (t *tail) Write(b []byte) (int, error) {
	t.kept = append(t.kept, b...)
	// Twice the size before cutting, so that a flood is copied at most once over.
	if len(t.kept) > 2*excerptBytes {
		t.trim()
	}
	return len(b), nil
}

func (t *tail) trim() {
	if over := len(t.kept) - excerptBytes; over > 0 {
		t.kept = append(t.kept[:0], t.kept[over:]...)
		t.cut = true
	}
}

// text returns the end of what was written that takes at most limit bytes as JSON text, and whether it is not all.
func (t *tail) text(limit int) (string, bool) {
	t.trim()
	end := lastJSON(t.kept, limit)
	return string(end), t.cut || len(end) < len(t.kept)
}

// firstJSON returns the longest beginning of b that takes at most limit bytes as JSON text, quotes not counted.
func firstJSON(b []byte, limit int) []byte {
	for i := 0; i < len(b); {
		r, width := utf8.DecodeRune(b[i:])
		if limit -= jsonBytes(r, width); limit < 0 {
			return b[:i]
		}
		i += width
	}
	return b
}

// lastJSON is firstJSON from the end.
func lastJSON(b []byte, limit int) []byte {
	for i := len(b); i > 0; {
		r, width := utf8.DecodeLastRune(b[:i])
		if limit -= jsonBytes(r, width); limit < 0 {
			return b[i:]
		}
		i -= width
	}
	return b
}

// jsonBytes returns the most that encoding/json makes of a rune: binary output can grow to six times its size.
func jsonBytes(r rune, width int) int {
	switch {
	case r == '"' || r == '\\' || r == '\n' || r == '\r' || r == '\t':
		return 2
	case r < ' ' || r == '<' || r == '>' || r == '&' || r == '\u2028' || r == '\u2029' || r == utf8.RuneError:
		return 6
	}
	return width
}
