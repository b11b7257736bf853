package builtin_test

import (
	"encoding/json"
	"strings"
	"testing"

	"taskledger/behaviors/builtin"
)

func TestExcerpt_TakesNoMoreJSONThanAllowed(t *testing.T) {
	for name, text := range map[string]string{
		"plain":   strings.Repeat("abc ", 100),
		"runes":   strings.Repeat("é€😀", 50),
		"control": strings.Repeat("\x00\x1b\n\t", 50),
		"html":    strings.Repeat("<&>\u2028", 50),
		"broken":  strings.Repeat("\xff\xfeab", 50),
		"quoted":  strings.Repeat(`"\`, 50),
		"empty":   "",
	} {
		t.Run(name, func(t *testing.T) {
			for _, limit := range []int{0, 1, 7, 100, 10_000} {
				first, last := builtin.FirstJSON([]byte(text), limit), builtin.LastJSON([]byte(text), limit)
				if !strings.HasPrefix(text, string(first)) || !strings.HasSuffix(text, string(last)) {
					t.Fatalf("limit %d: %q and %q are no ends of the text", limit, first, last)
				}
				for _, part := range [][]byte{first, last} {
					raw, err := json.Marshal(string(part))
					if err != nil || len(raw) > limit+2 {
						t.Errorf("limit %d: %d bytes, %v", limit, len(raw), err)
					}
				}
				if limit == 10_000 && (string(first) != text || string(last) != text) {
					t.Error("cut without need")
				}
			}
		})
	}
}
