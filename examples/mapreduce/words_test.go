package main

import (
	"bytes"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// aWord is the first 64 characters of a word, and what follows.
var aWord = regexp.MustCompile(`([\p{L}\p{Nd}]{1,64})[\p{L}\p{Nd}]*`)

// directCount counts the words of whole files, one after the other, by a regular expression.
func directCount(t *testing.T, dir string) map[string]int {
	t.Helper()
	counts := map[string]int{}
	if err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		for _, found := range aWord.FindAllSubmatch(text, -1) {
			counts[string(found[1])]++
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return counts
}

// hostile are files by name, with what pieces could be cut at wrongly.
func hostile() map[string][]byte {
	junk := make([]byte, 5*pieceBytes)
	for i := range junk {
		junk[i] = byte(i*i*7 + i>>8)
	}
	long := strings.Repeat("é", 3*pieceBytes)
	return map[string][]byte{
		"empty":            nil,
		"a:1:2":            []byte("one two two"),
		"below/a:b/c d":    bytes.Repeat([]byte("w1 né2, "), pieceBytes/4),
		"junk":             junk,
		"no leading bytes": bytes.Repeat([]byte{0x80}, 3*pieceBytes),
		"no end":           bytes.Repeat([]byte("ab\xc3"), pieceBytes),
		"no ASCII":         []byte(strings.Repeat("字典、語。", pieceBytes/5)),
		"one long word":    []byte(long),
		"long words":       []byte(long + " " + long + "x"),
		"cut in a rune":    []byte(strings.Repeat("a", pieceBytes-1) + "é b"),
		"of one piece":     []byte(strings.Repeat("a", pieceBytes)),
		"one more":         []byte(strings.Repeat("a", pieceBytes) + " "),
	}
}

func TestPieces_OfAnyFilesHaveTheWordsOfTheWholeAndAreNoLongerThanAWordBeyondTheirSize(t *testing.T) {
	t.Parallel()
	for name, text := range hostile() {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, text, 0o600); err != nil {
				t.Fatal(err)
			}
			got, end := map[string]int{}, int64(0)
			if err := pieces(dir, func(p piece) error {
				part, err := p.read(dir)
				if p.path != name || p.from != end || int64(len(part)) != p.to-p.from || len(part) == 0 {
					t.Errorf("piece %s has %d bytes; the one before it ends at %d", p, len(part), end)
				}
				end = p.to
				if tail := part[min(len(part), pieceBytes):]; !inside(tail) {
					t.Errorf("piece %s has more than the end of a word after %d bytes", p, pieceBytes)
				}
				count(part, got)
				return err
			}); err != nil {
				t.Fatal(err)
			}
			if want := directCount(t, dir); end != int64(len(text)) || !maps.Equal(got, want) {
				t.Errorf("%d words in %d bytes, want %d in %d", len(got), end, len(want), len(text))
			}
		})
	}
}

// inside says that a text is of one word, of which the first character may have begun before it.
func inside(text string) bool {
	for n := 0; n < utf8.UTFMax && text != "" && !utf8.RuneStart(text[0]); n++ {
		text = text[1:]
	}
	return len(aWord.FindString(text)) == len(text)
}

func TestPiece_OfAnyPathIsReadAsItWasWritten(t *testing.T) {
	for _, p := range []piece{{"a", 0, 1}, {"a:b/c:1:2", 65536, 131072}, {"", 0, 0}} {
		if got, err := parsePiece(p.String()); err != nil || got != p {
			t.Errorf("%q: %+v, %v", p.String(), got, err)
		}
	}
	for _, text := range []string{"", "a", "a:1", "a:x:1", "a:1:x"} {
		if p, err := parsePiece(text); err == nil {
			t.Errorf("%q is taken for %+v", text, p)
		}
	}
}
