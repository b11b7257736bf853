package segmentation

import (
	"errors"
	"fmt"
	"unicode/utf8"
)

// alphabet holds the characters of a position as ranges that ascend and do not meet.
type alphabet []span

// span holds the characters from first to last, without surrogates, which no text can hold.
type span struct{ first, last rune }

const (
	firstSurrogate = 0xD800
	surrogates     = 0x800
)

// parseAlphabet reads characters and ranges of them, such as "0-9a-z". A backslash makes the next character stand for
// itself.
func parseAlphabet(text string) (alphabet, error) {
	if text == "" {
		return nil, errors.New("empty, want at least one character")
	}
	var a alphabet
	for text != "" {
		first, rest, err := character(text)
		if err != nil {
			return nil, err
		}
		last := first
		if rest != "" && rest[0] == '-' {
			if last, rest, err = character(rest[1:]); err != nil {
				return nil, fmt.Errorf("range from %q: %w", first, err)
			}
		}
		if last < first {
			return nil, fmt.Errorf("range %c-%c descends", first, last)
		}
		if n := len(a); n > 0 && first <= a[n-1].last {
			const say = "%q comes after %q: want characters that ascend by their bytes, none twice"
			return nil, fmt.Errorf(say, first, a[n-1].last)
		}
		a = append(a, span{first, last})
		text = rest
	}
	return a, nil
}

// character returns the first character of a text and the rest of it.
func character(text string) (rune, string, error) {
	if text != "" && text[0] == '-' {
		return 0, "", errors.New(`"-" stands between two characters; want "\-" for the character`)
	}
	if text != "" && text[0] == '\\' {
		if text = text[1:]; text == "" {
			return 0, "", errors.New(`ends with "\", want a character after it`)
		}
	}
	r, size := utf8.DecodeRuneInString(text)
	switch {
	case size == 0:
		return 0, "", errors.New("ends where a character should follow")
	case r == utf8.RuneError && size == 1:
		return 0, "", fmt.Errorf("byte %#x is no UTF-8", text[0])
	}
	return r, text[size:], nil
}

// size returns the number of characters, which is at least 1.
func (a alphabet) size() (n int64) {
	for _, s := range a {
		n += s.size()
	}
	return n
}

// at returns the character at place i, from 0 on.
func (a alphabet) at(i int64) rune {
	for _, s := range a {
		if n := s.size(); i >= n {
			i -= n
			continue
		}
		r := s.first + rune(i)
		if s.first < firstSurrogate && r >= firstSurrogate {
			r += surrogates
		}
		return r
	}
	return utf8.RuneError
}

func (s span) size() int64 {
	n := int64(s.last-s.first) + 1
	if s.first < firstSurrogate && s.last >= firstSurrogate {
		n -= surrogates
	}
	return n
}
