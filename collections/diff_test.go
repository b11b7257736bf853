package collections_test

import (
	"crypto/sha256"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"taskledger/collections"
)

func TestDiff_SaysWhatBecomesOfEach(t *testing.T) {
	was := parse(t, `
sources:
  s:
    driver: noop
    collections: [{name: a}, {name: b, schedule: "@daily", keep: 0}, {name: c}]
`)
	want := parse(t, `
sources:
  s:
    driver: noop
    collections: [{name: d}, {name: c}, {name: b, timeout: 90s, keep: 5, grace: 0s}]
`)
	got := collections.Diff(was.Collections, want.Collections)
	expected := []collections.Change{
		{ID: "s_a", What: collections.Removed},
		{ID: "s_b", What: collections.Changed, Fields: []collections.FieldChange{
			{Field: "schedule", Was: "@daily", Want: "none"},
			{Field: "timeout", Was: "none", Want: "1m30s"},
			{Field: "keep", Was: "none", Want: "5"},
			{Field: "grace", Was: "1h0m0s", Want: "none"},
		}},
		{ID: "s_c", What: collections.Same},
		{ID: "s_d", What: collections.Added},
	}
	if !reflect.DeepEqual(got, expected) {
		t.Errorf("changes %+v", got)
	}
}

// Every key counts: in the hash of the collection, in that of the file, and as a change of the field of its name.
func TestDiff_NamesEachKeyThatChanges(t *testing.T) {
	for _, f := range []struct{ field, from, to, was, want string }{
		{"program", "program: sync", "program: other", "sync", "other"},
		{"args", `args: [a, "5"]`, "args: [a]", `["a","5"]`, `["a"]`},
		{"env", `env: {B: "1", A: x}`, "env: {}", `{"A":"` + masked("x") + `","B":"` + masked("1") + `"}`, "none"},
		{"dir", "dir: /srv", `dir: ""`, "/srv", "none"},
		{"schedule", `schedule: " 0 0 3 ? *  mon "`, `schedule: "@daily"`, "0 0 3 ? * MON", "@daily"},
		{"timezone", "timezone: Europe/Berlin", "timezone: UTC", "Europe/Berlin", "UTC"},
		{"priority", "priority: 9223371", "priority: 1", "9223371", "1"},
		{"timeout", "timeout: 90s", "timeout: 0s", "1m30s", "none"},
		{"attempts", "attempts: 3", "attempts: 0", "3", "25"},
		{"keep", "keep: 0", "keep: 1000", "none", "1000"},
		{"overlap", "overlap: replace", "overlap: allow", "replace", "allow"},
		{"misfire", "misfire: all", "misfire: skip", "all", "skip"},
		{"grace", "grace: 0s", "grace: 1s", "none", "1s"},
		{"jitter", "jitter: 1m", "jitter: 1ms", "1m0s", "1ms"},
		{"start", "T01:00:00+01:00", "T01:00:00Z", "2027-01-01T00:00:00Z", "2027-01-01T01:00:00Z"},
		{"end", `"2028-01-01T00:00:00Z"`, "2028-01-01T00:00:00.5Z", "2028-01-01T00:00:00Z", "2028-01-01T00:00:00.5Z"},
		{"pause_on_failure", "pause_on_failure: true", "pause_on_failure: false", "true", "false"},
	} {
		changed := strings.Replace(full, f.from, f.to, 1)
		if changed == full {
			t.Fatalf("%s is not there", f.from)
		}
		differs(t, full, changed, collections.FieldChange{Field: f.field, Was: f.was, Want: f.want})
	}
	const a = "sources: {s: {collections: [{name: c, driver: fetch, url: 'http://x/', to: y}]}}"
	differs(t, a, strings.Replace(a, "to: y", "to: z", 1), collections.FieldChange{Field: "to", Was: "y", Want: "z"})
	differs(t, a, strings.Replace(a, "url: 'http://x/'", "path: p", 1),
		collections.FieldChange{Field: "url", Was: "http://x/", Want: "none"},
		collections.FieldChange{Field: "path", Was: "none", Want: "p"})
	const b = "sources: {s: {collections: [{name: c, driver: 'go:a', params: {b: 1}}]}}"
	differs(t, b, strings.Replace(b, "b: 1", "b: 2", 1),
		collections.FieldChange{Field: "params", Was: masked(`{"b":1}`), Want: masked(`{"b":2}`)})
	differs(t, b, strings.Replace(b, "go:a", "go:b", 1),
		collections.FieldChange{Field: "driver", Was: "go:a", Want: "go:b"})
}

// masked returns what a difference shows of a secret.
func masked(text string) string {
	sum := sha256.Sum256([]byte(text))
	return fmt.Sprintf("(%d bytes, %x)", len(text), sum[:4])
}

// A secret that changes is seen to change, and is not seen: of a URL that is the user, the password and the query.
func TestDiff_ShowsNoSecret(t *testing.T) {
	const of = "sources: {s: {collections: [{name: c, driver: fetch, url: '%s', to: y}]}}"
	for _, f := range []struct{ from, to, was, want string }{
		{
			"http://u:one@a.example/p?k=v", "http://u:two@a.example/p?k=w",
			"http://" + masked("u:one") + "@a.example/p?" + masked("k=v"),
			"http://" + masked("u:two") + "@a.example/p?" + masked("k=w"),
		},
		{"https://a.example", "https://a.example?x=1", "https://a.example", "https://a.example?" + masked("x=1")},
		{"https://a.example/@b#c?", "https://u@a.example/@b", "https://a.example/@b#" + masked("c?"),
			"https://" + masked("u") + "@a.example/@b"},
	} {
		differs(t, fmt.Sprintf(of, f.from), fmt.Sprintf(of, f.to), collections.FieldChange{
			Field: "url",
			Was:   f.was,
			Want:  f.want,
		})
	}
	const env = "sources: {s: {collections: [{name: c, driver: exec, program: p, env: {KEY: %s, LANG: C}}]}}"
	field := func(value string) string { return `{"KEY":"` + masked(value) + `","LANG":"` + masked("C") + `"}` }
	differs(t, fmt.Sprintf(env, "one"), fmt.Sprintf(env, "two"), collections.FieldChange{
		Field: "env",
		Was:   field("one"),
		Want:  field("two"),
	})
}

// differs fails unless exactly these fields of the one collection change from one file to the other.
func differs(t *testing.T, from, to string, want ...collections.FieldChange) {
	t.Helper()
	was, now := parse(t, from), parse(t, to)
	changes := collections.Diff(was.Collections, now.Collections)
	if len(changes) != 1 || changes[0].What != collections.Changed || !reflect.DeepEqual(changes[0].Fields, want) {
		t.Errorf("changes %+v, want %+v", changes, want)
	}
	if was.Hash() == now.Hash() || was.Collections[0].Hash() == now.Collections[0].Hash() {
		t.Errorf("the same hash for another %s", want[0].Field)
	}
}

// What names another pair by the same id does not pass for the collection that was there.
func TestDiff_TellsAnotherPairOfTheSameID(t *testing.T) {
	differs(t,
		"sources: {a_b: {collections: [{name: c, driver: noop}]}}",
		"sources: {a: {collections: [{name: b_c, driver: noop}]}}",
		collections.FieldChange{Field: "source", Was: "a_b", Want: "a"},
		collections.FieldChange{Field: "name", Was: "c", Want: "b_c"})
}

func TestHash_DependsOnWhichCollectionsThereAre(t *testing.T) {
	one := parse(t, "sources: {s: {driver: noop, collections: [{name: a}]}}")
	two := parse(t, "sources: {s: {driver: noop, collections: [{name: a}, {name: b}]}}")
	none := parse(t, "sources: {}")
	if one.Hash() == two.Hash() || one.Hash() == none.Hash() {
		t.Error("the same hash")
	}
}

func TestHash_DependsNotOnDefaultsThatAreWrittenDown(t *testing.T) {
	short := parse(t, "sources: {s: {driver: noop, collections: [{name: a, schedule: '@daily'}]}}")
	long := parse(t, `
# every default
defaults:
  {driver: noop, timezone: UTC, priority: 200, timeout: 0s, attempts: 25, keep: 100, overlap: forbid, misfire: once,
   grace: 60m}
sources:
  s:
    collections: [{name: "a", schedule: " @DAILY ", jitter: 0s, pause_on_failure: false}]
`)
	if short.Hash() != long.Hash() || !reflect.DeepEqual(short, long) {
		t.Errorf("%+v, %+v", short, long)
	}
}
