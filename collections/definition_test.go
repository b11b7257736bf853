package collections_test

import (
	"testing"

	"taskledger/collections"
	"taskledger/schedule"
)

func TestDefinition_HasTheDriverAsParameters(t *testing.T) {
	file := parse(t, "sources: {a: {collections: [{name: b_c, driver: exec, program: p, args: [x], schedule: '@daily'}]}}")
	c := &file.Collections[0]
	d := c.Definition()
	const want = `{"source":"a","collection":"b_c","driver":"exec","program":"p","args":["x"]}`
	if string(d.Params) != want || d.Behavior != "collection" || d.Cron != "@daily" || c.ID() != "a_b_c" {
		t.Errorf("%s: %+v, %s", c.ID(), d, d.Params)
	}
	complete(t, c)
}

func TestOf_RefusesWhatNoCollectionSays(t *testing.T) {
	const good = `{"source":"a","collection":"b","driver":"noop"}`
	if _, err := collections.Of(schedule.Definition{Params: []byte(good), UUIDs: true}); err != nil {
		t.Error(err)
	}
	for _, d := range []schedule.Definition{
		{UUIDs: true},
		{Params: []byte("[]"), UUIDs: true},
		{Params: []byte(`{"source":"a","collection":"b","driver":"noop","x":1}`), UUIDs: true},
		{Params: []byte(good)},
	} {
		if c, err := collections.Of(d); err == nil {
			t.Errorf("%s is read as %+v", d.Params, c)
		}
	}
}
