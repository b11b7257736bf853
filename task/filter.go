package task

import (
	"fmt"
	"strings"
	"time"

	"taskledger/events"
)

// Filter selects tasks; zero fields match everything.
type Filter struct {
	Status    Status
	Substatus Substatus // as the owner of the shard finds it when it is asked
	Behavior  string
	Affinity  string
	Node      string // session id of the node on which an attempt runs
	Limit     int    // most tasks that are returned, 1 to 1,000; 0 = 100. It selects nothing

	AffinityPrefix string // the beginning of the affinity
	Creator        string // the principal that created it
	Work           bool   // true selects tasks with a partitioned work that was planned and is not forgotten
	Tag            string // one of its tags

	// Times are compared to the millisecond. From is included, To is not. A task that has not ended is in no range of
	// ends; one that runs again, or whose further run was cancelled, ended when its last outcome was recorded. The zero
	// time is no bound, and a bound is after the beginning of 1970.
	CreatedFrom, CreatedTo time.Time
	EndedFrom, EndedTo     time.Time
}

// filterFields lists the fields of a Filter that text can name, in the order of help and documents.
var filterFields = []struct {
	name, value string // the value in words
	set         func(f *Filter, text string) error
}{
	{"status", "CREATED, RUNNING, SUCCESS or FAILURE", func(f *Filter, text string) (err error) {
		f.Status, err = ParseStatus(text)
		return err
	}},
	{"substatus", strings.Join(Substatuses(), ", "), func(f *Filter, text string) (err error) {
		f.Substatus, err = ParseSubstatus(text)
		return err
	}},
	{"behavior", "its behavior", func(f *Filter, text string) error {
		f.Behavior = text
		return events.ValidateBehavior(text)
	}},
	{"affinity", "the part of its id before the slash", setText(func(f *Filter) *string { return &f.Affinity })},
	{"affinity-prefix", "what that part begins with", setText(func(f *Filter) *string { return &f.AffinityPrefix })},
	{"node", "name or session id of the node that runs it", setText(func(f *Filter) *string { return &f.Node })},
	{"creator", "the principal that created it", setText(func(f *Filter) *string { return &f.Creator })},
	{"tag", "one of its tags", func(f *Filter, text string) error {
		f.Tag = text
		return events.ValidateTag(text)
	}},
	{"work", "true: it has a partitioned work", func(f *Filter, text string) error {
		if f.Work = text == "true"; !f.Work {
			return fmt.Errorf("%.32q: want true", text)
		}
		return nil
	}},
	{"created-from", "created at this time or later", setTime(func(f *Filter) *time.Time { return &f.CreatedFrom })},
	{"created-to", "created before this time", setTime(func(f *Filter) *time.Time { return &f.CreatedTo })},
	{"ended-from", "ended at this time or later", setTime(func(f *Filter) *time.Time { return &f.EndedFrom })},
	{"ended-to", "ended before this time", setTime(func(f *Filter) *time.Time { return &f.EndedTo })},
}

// setText returns what sets a field of text, which must not be empty.
func setText(of func(*Filter) *string) func(*Filter, string) error {
	return func(f *Filter, text string) error {
		if *of(f) = text; text == "" {
			return fmt.Errorf("it is empty")
		}
		return nil
	}
}

// setTime returns what sets a bound.
func setTime(of func(*Filter) *time.Time) func(*Filter, string) error {
	return func(f *Filter, text string) (err error) {
		if *of(f), err = time.Parse(time.RFC3339, text); err != nil {
			return fmt.Errorf("%q: want a time such as 2026-11-23T17:00:00Z", text)
		}
		if events.MillisOf(*of(f)) <= 0 { // also the zero time, which would be no bound
			*of(f) = time.Time{}
			return fmt.Errorf("%q: want a time after %s", text, epoch)
		}
		return nil
	}
}

// epoch is the time that a bound is after: stored, 0 is none.
const epoch = "1970-01-01T00:00:00Z"

// tooEarly returns the field of a bound that is not after the epoch, and so would be none; "" for none.
func (f Filter) tooEarly() string {
	for _, at := range []struct {
		field string
		time  time.Time
	}{{"created-from", f.CreatedFrom}, {"created-to", f.CreatedTo}, {"ended-from", f.EndedFrom}, {"ended-to", f.EndedTo}} {
		if !at.time.IsZero() && events.MillisOf(at.time) <= 0 {
			return at.field
		}
	}
	return ""
}

// FilterFields returns the names of the fields that Filter.Set takes, and at the same index of values a description
// of what each takes, for people.
func FilterFields() (names, values []string) {
	for _, of := range filterFields {
		names, values = append(names, of.name), append(values, of.value)
	}
	return names, values
}

// Set reads text into the field of a name that FilterFields lists. Its error, for people, names the field, and for an
// unknown name all the fields.
func (f *Filter) Set(field, text string) error {
	for _, of := range filterFields {
		if of.name != field {
			continue
		}
		if err := of.set(f, text); err != nil {
			return fmt.Errorf("%s: %w", field, err)
		}
		return nil
	}
	names, _ := FilterFields()
	return fmt.Errorf("%q is no field of a filter: want one of %s", field, strings.Join(names, ", "))
}

// ParseFilter returns the filter of texts such as "status=FAILURE", each of another field. Its error, for people,
// names the text or the field that is wrong.
func ParseFilter(texts []string) (f Filter, err error) {
	given := map[string]bool{}
	for _, text := range texts {
		field, value, ok := strings.Cut(text, "=")
		switch {
		case !ok:
			return f, fmt.Errorf("%q: want field=value", text)
		case given[field]:
			return f, fmt.Errorf("%q: the field %s is given twice", text, field)
		}
		given[field] = true
		if err := f.Set(field, value); err != nil {
			return f, err
		}
	}
	return f, nil
}

// Problem returns the name of a field that no task can match, or of a time that bounds nothing since it lies before
// 1970, and says what is wrong with it; "" = nothing is wrong.
func (f Filter) Problem() (field, problem string) {
	if field := f.tooEarly(); field != "" {
		return field, "want a time after " + epoch
	}
	switch {
	case f.Status > Failure:
		return "status", fmt.Sprintf("there is no status %d", f.Status)
	case f.Substatus > SubCancelled:
		return "substatus", fmt.Sprintf("there is no substatus %d", f.Substatus)
	case !f.CreatedTo.IsZero() && !f.CreatedFrom.Before(f.CreatedTo):
		return "created-from", "it is not before created-to"
	case !f.EndedTo.IsZero() && !f.EndedFrom.Before(f.EndedTo):
		return "ended-from", "it is not before ended-to"
	case strings.Contains(f.Affinity, "/"):
		return "affinity", "it has a slash: want the part of an id before the first one"
	case strings.Contains(f.AffinityPrefix, "/"):
		return "affinity-prefix", "it has a slash: want the beginning of the part of an id before the first one"
	case f.Affinity != "" && !strings.HasPrefix(f.Affinity, f.AffinityPrefix):
		return "affinity-prefix", "the affinity does not begin with it"
	}
	return "", ""
}
