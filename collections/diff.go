package collections

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
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

// FieldChange holds a field that changes, in words: "none" for what is not there, JSON for lists and mappings. Of what
// may be a secret it tells the size and the beginning of the SHA-256, "(12 bytes, 5f0c1d2e)": each value of env, what
// stands in url before the host and behind the path, and params.
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
			change.Fields = append(change.Fields, FieldChange{f.name, shown(f, was), shown(now[i], want)})
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

// shown returns the text of a field without secrets.
func shown(f field, of *Collection) string {
	switch {
	case f.text == "none":
	case f.name == "env":
		env := map[string]string{}
		for name, value := range of.Driver.Env {
			env[name] = masked(value)
		}
		return list(env, len(env))
	case f.name == "url":
		return maskedURL(f.text)
	case f.name == "params":
		return masked(f.text)
	}
	return f.text
}

// maskedURL takes the text apart by itself: what a library does not read is hidden, too.
func maskedURL(text string) string {
	scheme, rest, _ := strings.Cut(text, "://")
	host, query := rest, ""
	if i := strings.IndexAny(rest, "?#"); i >= 0 {
		host, query = rest[:i], rest[i:i+1]+masked(rest[i+1:])
	}
	end := strings.IndexByte(host, '/')
	if end < 0 {
		end = len(host)
	}
	if at := strings.LastIndexByte(host[:end], '@'); at >= 0 {
		host = masked(host[:at]) + host[at:]
	}
	return scheme + "://" + host + query
}

// masked tells texts apart, and shows none.
func masked(text string) string {
	sum := sha256.Sum256([]byte(text))
	return fmt.Sprintf("(%d bytes, %x)", len(text), sum[:4])
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
