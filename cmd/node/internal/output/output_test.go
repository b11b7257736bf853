package output_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode"

	"taskledger/cmd/node/internal/flags"
	"taskledger/cmd/node/internal/output"
	"taskledger/events"
)

// hostile clears a screen, sets a title, and has the forms of a control sequence that are one character.
const hostile = "a\x1b[2J\x1b]0;title\x07\u009b31m\x7f\r\nb"

// steers reports whether text has control characters besides the line ends and tabs of a table.
func steers(text string) bool {
	return strings.ContainsFunc(strings.TrimSuffix(text, "\n"), func(r rune) bool { return unicode.IsControl(r) })
}

func TestPrinter_WritesNoControlCharacters(t *testing.T) {
	for _, asJSON := range []bool{false, true} {
		var out bytes.Buffer
		p := output.New(&out, asJSON)
		if err := p.Row(map[string]string{"text": hostile}, hostile); err != nil {
			t.Fatal(err)
		}
		if err := p.Flush(); err != nil {
			t.Fatal(err)
		}
		if steers(out.String()) {
			t.Errorf("as JSON %t: %q", asJSON, out.String())
		}
		var read map[string]string
		if asJSON && (json.Unmarshal(out.Bytes(), &read) != nil || read["text"] != hostile) {
			t.Errorf("%q is read as %q", out.String(), read)
		}
	}
	if got := output.Clean(hostile); steers(got) || len([]rune(got)) != len([]rune(hostile)) {
		t.Errorf("cleaned: %q", got)
	}
}

func TestPrinter_ALongTextMovesItsOwnRowAlone(t *testing.T) {
	var out bytes.Buffer
	p := output.New(&out, false, "STORE", "TASKS", "BYTES")
	long := strings.Repeat("x", 200)
	for _, row := range [][]any{{"crawl", 3, 12}, {long, 4, 13}, {"größe", 50, ""}} {
		if err := p.Row(nil, row...); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Flush(); err != nil {
		t.Fatal(err)
	}
	if want := "STORE  TASKS  BYTES\ncrawl  3      12\n" + long + "  4      13\ngröße  50\n"; out.String() != want {
		t.Errorf("printed\n%swant\n%s", out.String(), want)
	}
	if err := p.Flush(); err != nil || strings.Count(out.String(), "\n") != 4 {
		t.Errorf("flushed again: %v\n%s", err, out.String())
	}
}

func TestCleanJSON_KeepsTheMeaning(t *testing.T) {
	text := "{\n\t\"a\": \"\u009b31m\x7f é\"\r\n}"
	got := output.CleanJSON([]byte(text))
	var want, read any
	if json.Unmarshal([]byte(text), &want) != nil || json.Unmarshal(got, &read) != nil || want.(map[string]any)["a"] != read.(map[string]any)["a"] {
		t.Errorf("%q is cleaned to %q", text, got)
	}
	if strings.ContainsAny(string(got), "\u009b\x7f") {
		t.Errorf("%q", got)
	}
	if plain := []byte("{\n \"a\": \"é\"}"); &output.CleanJSON(plain)[0] != &plain[0] {
		t.Error("text without control characters is copied")
	}
}

// Flags take RFC 3339, and people paste what a table shows.
func TestTime_IsLocalWithItsZoneAndTakenByFlags(t *testing.T) {
	at := time.Date(2026, 11, 26, 19, 35, 37, 356e6, time.UTC)
	for zone, want := range map[*time.Location]string{
		time.UTC:                              "2026-11-26T19:35:37.356Z",
		time.FixedZone("somewhere", -5*60*60): "2026-11-26T14:35:37.356-05:00",
	} {
		got := output.TimeIn(zone, events.MillisOf(at))
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
		if read, err := flags.Time("--at", got, flags.Ago); err != nil || !read.Equal(at) {
			t.Errorf("a flag reads %s as %s, %v", got, read, err)
		}
	}
	if got, want := output.Time(events.MillisOf(at)), output.TimeIn(time.Local, events.MillisOf(at)); got != want {
		t.Errorf("%s, want the local time, %s", got, want)
	}
	if none := output.Time(0); none != "-" {
		t.Errorf("no time is %q", none)
	}
}
