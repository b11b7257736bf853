package events_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/vmihailenco/msgpack/v5"

	"taskledger/events"
)

var update = flag.Bool("update", false, "write golden files that are missing; existing ones are never changed")

// pinned compares got with a golden file. What was stored once must be readable for ever, so that -update adds files
// and never changes one: whoever means it deletes the file first.
func pinned(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	want, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && *update:
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	case err != nil:
		t.Fatalf("%v; -update writes it", err)
	case !bytes.Equal(got, want):
		t.Errorf("%s holds\n%s\nthis version writes\n%s\nThe stored form must not change.", path, want, got)
	}
}

func TestGolden_EveryKindIsStoredAsEver(t *testing.T) {
	kinds := events.Kinds()
	if got, want := len(samples()), len(kinds); got != want {
		t.Fatalf("%d samples for %d kinds", got, want)
	}
	for i, ev := range samples() {
		if ev.Kind() != kinds[i] {
			t.Fatalf("sample %d is of kind %s, want %s", i, ev.Kind(), kinds[i])
		}
		t.Run(ev.Kind().String(), func(t *testing.T) { golden(t, strings.ToLower(ev.Kind().String()), sampleOrigins, ev) })
	}
}

func TestGolden_WholeEntryIsStoredAsEver(t *testing.T) {
	const kinds = 14 // when the file was written; later kinds have files of their own
	golden(t, "entry", sampleOrigins, samples()[:kinds]...)
}

func TestGolden_OptionalValuesAreStoredAsEver(t *testing.T) {
	for name, ev := range tailed() {
		t.Run(name, func(t *testing.T) { golden(t, name, sampleCallers, ev) })
	}
}

// golden checks that an entry is stored as the file says, that the file is read as the entry, and what the readable
// form beside it says.
func golden(t *testing.T, name string, origins []events.Origin, evs ...events.Event) {
	entry, data := seal(t, sampleHead(), origins, evs...)
	pinned(t, name+".golden", lines(data))
	pinned(t, name+".txt", readable(t, data))

	text, err := os.ReadFile(filepath.Join("testdata", name+".golden"))
	if err != nil {
		t.Fatal(err)
	}
	stored, err := hex.DecodeString(strings.ReplaceAll(string(text), "\n", ""))
	if err != nil {
		t.Fatal(err)
	}
	got, err := events.Decode(stored)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(*got, entry) {
		t.Errorf("%s.golden is read as\n%+v\nwant\n%+v", name, *got, entry)
	}
}

// lines is hexadecimal, 32 bytes a line.
func lines(b []byte) []byte {
	var out bytes.Buffer
	for len(b) > 0 {
		n := min(32, len(b))
		fmt.Fprintf(&out, "%x\n", b[:n])
		b = b[n:]
	}
	return out.Bytes()
}

// readable renders a stored entry as another library reads it.
func readable(t *testing.T, data []byte) []byte {
	raw := parse(t, data)
	var out bytes.Buffer
	fmt.Fprintf(&out, "version %v\nhead    %s\n", raw.version, render(generic(t, raw.head)))
	for i := range raw.origins {
		fmt.Fprintf(&out, "origin  %s\n", render(generic(t, raw.origins[i])))
		if raw.answers[i] != nil {
			fmt.Fprintf(&out, "answers 0x%x\n", raw.answers[i])
		}
	}
	for i := range raw.headers {
		fmt.Fprintf(&out, "event   %s\n", render(generic(t, raw.headers[i])))
		if raw.payloads[i] != nil {
			fmt.Fprintf(&out, "payload %q\n", raw.payloads[i])
		}
	}
	fmt.Fprintf(&out, "hash    %x\n", raw.hash)
	return out.Bytes()
}

func render(v any) string {
	switch v := v.(type) {
	case []any:
		parts := make([]string, len(v))
		for i := range v {
			parts[i] = render(v[i])
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case []byte:
		if v != nil {
			return fmt.Sprintf("0x%x", v)
		}
		return "nil"
	case nil:
		return "nil"
	case string:
		return fmt.Sprintf("%q", v)
	}
	return fmt.Sprint(v)
}

// generic decodes msgpack without knowing what it holds.
func generic(t testing.TB, b []byte) any {
	t.Helper()
	var v any
	if err := msgpack.Unmarshal(b, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// raw is a stored entry taken apart.
type raw struct {
	version           any
	head              []byte
	origins, answers  [][]byte
	headers, payloads [][]byte
	hash              []byte
}

func parse(t testing.TB, data []byte) raw {
	t.Helper()
	top := generic(t, data).([]any)
	r := raw{version: top[0], head: top[1].([]byte), hash: top[4].([]byte)}
	r.origins, r.answers = pairs(top[2])
	r.headers, r.payloads = pairs(top[3])
	return r
}

func pairs(array any) (first, second [][]byte) {
	for i, part := range array.([]any) {
		b, _ := part.([]byte)
		if i%2 == 0 {
			first = append(first, b)
		} else {
			second = append(second, b)
		}
	}
	return first, second
}
