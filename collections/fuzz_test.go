package collections_test

import (
	"errors"
	"os"
	"reflect"
	"testing"

	"taskledger/collections"
	"taskledger/events"
	"taskledger/schedule"
)

// FuzzParse reads any text as a file. It is refused with problems, or its collections are complete: what the engine
// makes of their definitions gives them back.
func FuzzParse(f *testing.F) {
	for _, path := range []string{"testdata/design.yaml", "../examples/sync.yaml"} {
		text, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	for _, text := range []string{
		full,
		"sources: {s: {collections: [{name: c, driver: 'go:x', params: null}]}}",
		"sources: {s: {collections: [{name: c, driver: 'go:x', params: [0x1F, 1_0, 18446744073709551616, '<&>', 1e400]}]}}",
		"sources: {s: {collections: [{name: c, driver: exec, program: p, args: [], env: {}}]}}",
		"defaults: &d {keep: 5}\nsources: {s: {<<: *d, collections: [*d]}}",
		"sources: {? [a] : b, ~: c}\n",
		"sources: !x {s: !!set {a}}\n--- 1\n",
		"%YAML 1.1\n---\nsources: {}\n...\n",
		"{{{{[[[[", "a: |\n  b\n", "\xef\xbb\xbfsources: {}", "\x00", "- - - -\n",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		file, _, err := collections.Parse("f", text)
		if err != nil {
			invalid, is := errors.AsType[*collections.InvalidFileError](err)
			if !is || file != nil || len(invalid.Problems) == 0 || len(invalid.Problems) > collections.MaxProblems {
				t.Fatalf("%+v, %v", file, err)
			}
			return
		}
		last := ""
		for i := range file.Collections {
			c := &file.Collections[i]
			if c.ID() <= last || events.ValidateSchedule(c.ID()) != nil {
				t.Fatalf("id %q after %q", c.ID(), last)
			}
			last = c.ID()
			complete(t, c)
		}
	})
}

// complete fails unless the definition of a collection gives it back, and has no default left to fill in.
func complete(t *testing.T, c *collections.Collection) {
	t.Helper()
	d := c.Definition()
	if got, err := collections.Of(d); err != nil || !reflect.DeepEqual(got, *c) {
		t.Fatalf("%+v is read as %+v, %v", c, got, err)
	}
	without := d.Cron == ""
	if without {
		d.Cron = "@daily"
	}
	plan, err := d.Plan(events.Policy{})
	if err != nil {
		t.Fatalf("%+v: %v", d, err)
	}
	if got := schedule.Of(&plan, events.JSON(d.Params)); !reflect.DeepEqual(got, d) {
		t.Fatalf("%+v becomes %+v", d, got)
	}
}
