package collections_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"taskledger/collections"
)

// key is a key of a file, with a value, with keys below it, or with a list of mappings.
type key struct {
	name, value string
	below       []key
	list        [][]key
}

// timings holds values that any collection may have.
var timings = map[string][]string{
	"schedule":         {`"@daily"`, `0 0 3 ? * MON-FRI`, `""`, `"0 */5 * ? * *"`},
	"timezone":         {"Europe/Berlin", "UTC", "America/New_York"},
	"priority":         {"1", "200", "9223371"},
	"timeout":          {"90s", "0s", "1h30m"},
	"attempts":         {"0", "1", "25"},
	"keep":             {"0", "100", "7"},
	"overlap":          {"forbid", "allow", "replace"},
	"misfire":          {"once", "skip", "all"},
	"grace":            {"0s", "1h", "5m"},
	"jitter":           {"0s", "10s"},
	"start":            {"2027-01-01T00:00:00Z", `"2026-01-01T00:00:00+02:00"`},
	"end":              {"2030-01-01T00:00:00Z"},
	"pause_on_failure": {"true", "false"},
}

// drivers holds the settings of drivers.
var drivers = map[string][]key{
	"noop":   nil,
	"go:a-b": {{name: "params", value: `{a: [1, {b: null}], c: "x"}`}},
	"exec":   {{name: "program", value: "p"}, {name: "args", value: `[a, "# b"]`}, {name: "env", value: "{A: a, B: b}"}},
	"fetch":  {{name: "url", value: "http://a.example/b"}},
}

// drawLevel returns timings, and a driver with all that it needs. A collection alone is fetched to a file.
func drawLevel(t *rapid.T, to ...key) []key {
	var keys []key
	for _, name := range sorted(timings) {
		if rapid.Bool().Draw(t, name) {
			keys = append(keys, key{name: name, value: rapid.SampledFrom(timings[name]).Draw(t, "value")})
		}
	}
	if rapid.Bool().Draw(t, "driver") {
		driver := rapid.SampledFrom(sorted(drivers)).Draw(t, "name")
		if driver == "fetch" && len(to) == 0 {
			return keys
		}
		keys = append(keys, key{name: "driver", value: driver})
		keys = append(keys, drivers[driver]...)
		if driver == "fetch" {
			keys = append(keys, to...)
		}
	}
	return keys
}

func sorted[V any](m map[string]V) []string {
	var names []string
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func drawFile(t *rapid.T) []key {
	sources := key{name: "sources", value: "{}"}
	for i := range rapid.IntRange(0, 3).Draw(t, "sources") {
		source := key{name: fmt.Sprintf("s%d", i)}
		names := key{name: "collections", value: "[]"}
		for j := range rapid.IntRange(0, 4).Draw(t, "collections") {
			to := key{name: "to", value: fmt.Sprintf("a/%d/%d.csv", i, j)}
			names.list = append(names.list, append(drawLevel(t, to), key{name: "name", value: fmt.Sprintf("c%d", j)}))
		}
		source.below = append(drawLevel(t), names)
		sources.below = append(sources.below, source)
	}
	file := []key{sources}
	if defaults := drawLevel(t); len(defaults) > 0 {
		file = append(file, key{name: "defaults", below: defaults})
	}
	return file
}

// shuffled returns keys and lists in another order.
func shuffled(t *rapid.T, keys []key) []key {
	keys = rapid.Permutation(keys).Draw(t, "keys")
	for i := range keys {
		keys[i].below = shuffled(t, keys[i].below)
		keys[i].list = rapid.Permutation(keys[i].list).Draw(t, "list")
		for j := range keys[i].list {
			keys[i].list[j] = shuffled(t, keys[i].list[j])
		}
	}
	return keys
}

// printed writes keys as YAML, each with what comment returns behind it.
func printed(keys []key, indent string, comment func() string) string {
	var b strings.Builder
	for _, k := range keys {
		switch {
		case len(k.below) > 0:
			fmt.Fprintf(&b, "%s%s:%s\n%s", indent, k.name, comment(), printed(k.below, indent+"  ", comment))
		case len(k.list) > 0:
			fmt.Fprintf(&b, "%s%s:%s\n", indent, k.name, comment())
			for _, element := range k.list {
				text := printed(element, indent+"    ", comment)
				b.WriteString(indent + "  - " + strings.TrimPrefix(text, indent+"    "))
			}
		default:
			fmt.Fprintf(&b, "%s%s: %s%s\n", indent, k.name, k.value, comment())
		}
	}
	return b.String()
}

// A file means the same in another order and with comments: File and hash are equal, and nothing is to be changed.
func TestParse_OrderAndCommentsMeanNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		keys := drawFile(t)
		plain := printed(keys, "", func() string { return "" })
		n := 0
		other := printed(shuffled(t, keys), "", func() string {
			n++
			return fmt.Sprintf(" # %d: x\n\n# {y", n)
		})
		was, _, err := collections.Parse("plain", []byte(plain))
		if err != nil {
			t.Fatalf("%v\n%s", err, plain)
		}
		now, _, err := collections.Parse("other", []byte(other))
		if err != nil {
			t.Fatalf("%v\n%s", err, other)
		}
		if !reflect.DeepEqual(was, now) || was.Hash() != now.Hash() {
			t.Fatalf("%s\nis read as %+v\n%s\nas %+v", plain, was, other, now)
		}
		for _, change := range collections.Diff(was.Collections, now.Collections) {
			if change.What != collections.Same {
				t.Fatalf("change %+v", change)
			}
		}
	})
}
