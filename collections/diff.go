package collections

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"time"
)

// What says what becomes of a collection.
type What string

// The changes of a collection.
const (
	Added   What = "added"
	Changed What = "changed"
	Removed What = "removed"
	Same    What = "same"
)

// Change says what becomes of one collection.
type Change struct {
	ID     string
	What   What
	Fields []FieldChange // of Changed; in the order of the keys in the package's documentation
}

// FieldChange holds a field that changes, in words: "none" for what is not there, JSON for lists and mappings.
type FieldChange struct {
	Field, Was, Want string
}

// Diff compares what there was with what is wanted, each with an id at most once, and returns a Change for each id, in
// their order. Where another pair of source and name spells the id of one that was there, it tells a change of source
// and name: the history of the one would become that of the other.
func Diff(was, want []Collection) []Change {
	byID := map[string]*Collection{}
	for i := range was {
		byID[was[i].ID()] = &was[i]
	}
	var changes []Change
	for i := range want {
		c, id := &want[i], want[i].ID()
		before, there := byID[id]
		delete(byID, id)
		if !there {
			changes = append(changes, Change{ID: id, What: Added})
			continue
		}
		changes = append(changes, compare(before, c))
	}
	for id := range byID {
		changes = append(changes, Change{ID: id, What: Removed})
	}
	slices.SortFunc(changes, func(a, b Change) int { return cmp.Compare(a.ID, b.ID) })
	return changes
}

func compare(was, want *Collection) Change {
	change := Change{ID: want.ID(), What: Same}
	now := fields(want)
	for i, f := range fields(was) {
		if f.text != now[i].text {
			change.Fields = append(change.Fields, FieldChange{f.name, f.text, now[i].text})
			change.What = Changed
		}
	}
	return change
}

// field is a field in words.
type field struct{ name, text string }

// fields returns all that a collection says.
func fields(c *Collection) []field {
	d, r := &c.Driver, &c.Runs
	return []field{
		{"source", c.Source},
		{"name", c.Name},
		{"driver", d.Driver},
		{"program", orNone(d.Program)},
		{"args", list(d.Args, len(d.Args))},
		{"env", list(d.Env, len(d.Env))},
		{"dir", orNone(d.Dir)},
		{"url", orNone(d.URL)},
		{"path", orNone(d.Path)},
		{"to", orNone(d.To)},
		{"params", orNone(string(d.Params))},
		{"schedule", orNone(r.Cron)},
		{"timezone", r.Timezone},
		{"priority", strconv.FormatInt(r.Priority, 10)},
		{"timeout", span(r.Timeout)},
		{"attempts", strconv.Itoa(r.Attempts)},
		{"keep", orNone(positive(r.Keep))},
		{"overlap", string(r.Overlap)},
		{"misfire", string(r.Misfire)},
		{"grace", span(r.Grace)},
		{"jitter", span(r.Jitter)},
		{"start", moment(r.Start)},
		{"end", moment(r.End)},
		{"pause_on_failure", strconv.FormatBool(r.PauseOnFailure)},
	}
}

func orNone(text string) string { return cmp.Or(text, "none") }

func list(v any, length int) string {
	if length == 0 {
		return "none"
	}
	text, _ := json.Marshal(v) // of texts
	return string(text)
}

func positive(n int) string {
	if n <= 0 {
		return ""
	}
	return strconv.Itoa(n)
}

func span(d time.Duration) string {
	if d <= 0 {
		return "none"
	}
	return d.String()
}

func moment(t time.Time) string {
	if t.IsZero() {
		return "none"
	}
	return t.UTC().Format(time.RFC3339Nano)
}
