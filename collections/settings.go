package collections

import (
	"encoding/json"
	"maps"
	"slices"
)

// driver returns the driver of a collection with its settings. The keys in own stand at the collection, those in l are
// all that hold for it.
func driver(f *findings, own, l level, at *place) Driver {
	name := l.text("driver")
	if l.has("driver") && name == "" {
		return Driver{} // a problem, which was told
	}
	says := "driver " + name
	if name == "" {
		name, says = Noop, "the driver noop, since none is named,"
	}
	keys := settingsOf(name)
	for _, key := range slices.Sorted(maps.Keys(own)) {
		if _, timed := timingKeys[key]; !timed && key != "driver" && !slices.Contains(keys, key) {
			f.problem(own[key].at, "%s has no such key", says)
		}
	}
	names := map[string]string{"driver": "driver"}
	for _, key := range keys {
		names[key] = key
	}
	d := Driver{}
	_ = json.Unmarshal(l.object(names), &d) // texts, and what is JSON
	d.Driver = name
	if len(d.Args) == 0 {
		d.Args = nil
	}
	if len(d.Env) == 0 {
		d.Env = nil
	}
	required(f, l, name, at)
	return d
}

// required tells which keys a driver lacks.
func required(f *findings, l level, name string, at *place) {
	missing := func(key string) {
		if !l.has(key) {
			f.problem(at.missing(key), "missing: driver %s wants it", name)
		}
	}
	switch {
	case name == Exec:
		missing("program")
	case name == Fetch:
		missing("to")
		switch {
		case l.has("url") && l.has("path"):
			f.problem(l["path"].at, "url is there, too: want one of both")
		case !l.has("url") && !l.has("path"):
			f.problem(at.missing("url"), "missing: driver %s wants url or path", name)
		}
	}
}
