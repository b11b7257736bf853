package collections

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// level holds keys of a collection, of a source or of the defaults, and those that it inherits.
type level map[string]value

// forms lists the keys that each level may have.
var forms = map[string]form{
	"driver":           inText,
	"program":          inText,
	"args":             inTexts,
	"env":              inEnv,
	"dir":              inText,
	"url":              inText,
	"path":             inText,
	"to":               inText,
	"params":           inFreeForm,
	"schedule":         inText,
	"timezone":         inText,
	"priority":         inNumber,
	"timeout":          inText,
	"attempts":         inNumber,
	"keep":             inNumber,
	"overlap":          inText,
	"misfire":          inText,
	"grace":            inText,
	"jitter":           inText,
	"start":            inTime,
	"end":              inTime,
	"pause_on_failure": inFlag,
}

// known names the keys of forms.
var known = slices.Sorted(maps.Keys(forms))

// levelOf reads the keys of a level, but those that it alone may have.
func levelOf(f *findings, all []entry, own ...string) level {
	l := level{}
	for _, e := range all {
		as, is := forms[e.key]
		switch {
		case is:
			v := valueOf(f, e.node, e.at, as)
			if v.json != nil && !check(f, e.key, v) {
				v.json = nil
			}
			l[e.key] = v
		case !slices.Contains(own, e.key):
			f.problem(e.keyAt, "unknown key, want one of %s", strings.Join(slices.Concat(own, known), ", "))
		}
	}
	return l
}

// over returns the level with what it inherits from the one above.
func (l level) over(above level) level {
	all := maps.Clone(above)
	if l.has("url") || l.has("path") {
		delete(all, "url")
		delete(all, "path")
	}
	maps.Copy(all, l)
	return all
}

func (l level) has(key string) bool {
	_, has := l[key]
	return has
}

// place returns that of a key, and else that of the mapping that lacks it.
func (l level) place(key string, mapping *place) *place {
	if v, has := l[key]; has {
		return v.at
	}
	return mapping.missing(key)
}

// text returns a text, "" where there is none.
func (l level) text(key string) (text string) {
	if v := l[key]; v.json != nil {
		_ = json.Unmarshal(v.json, &text) // which was encoded from a text
	}
	return text
}

// object returns keys as a JSON object, under the names that it gives them.
func (l level) object(names map[string]string) []byte {
	object := map[string]json.RawMessage{}
	for key, name := range names {
		if v := l[key]; v.json != nil {
			object[name] = v.json
		}
	}
	text, _ := json.Marshal(object) // of values that are JSON
	return text
}
