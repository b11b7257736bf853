package task_test

import (
	"strings"
	"testing"
	"time"

	"taskledger/task"
)

func TestParse_ReadsEachFieldOnce(t *testing.T) {
	f, err := task.ParseFilter([]string{"status=FAILURE", "creator=a=b"})
	if want := (task.Filter{Status: task.Failure, Creator: "a=b"}); err != nil || f != want {
		t.Errorf("%+v, %v; want %+v", f, err, want)
	}
	for text, says := range map[string]string{"status": `"status": want field=value`, "status=": "status: ", "colour=red": `"colour" is no field`, "affinity=": "affinity: it is empty", "creator=c": "given twice"} {
		if _, err := task.ParseFilter([]string{"creator=b", text}); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", text, err, says)
		}
	}
}

func TestFilter_SetsWhatTextNames(t *testing.T) {
	var f task.Filter
	for field, text := range map[string]string{"status": "FAILURE", "substatus": "final", "behavior": "work", "affinity": "a", "affinity-prefix": "a", "node": "n",
		"creator": "ada", "tag": "nightly", "work": "true", "created-from": "2026-11-23T00:00:00Z", "created-to": "2026-11-24T00:00:00Z", "ended-from": "2026-11-23T00:00:00Z", "ended-to": "2026-11-24T00:00:00Z"} {
		if err := f.Set(field, text); err != nil {
			t.Error(err)
		}
	}
	from, to := time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC), time.Date(2026, 11, 24, 0, 0, 0, 0, time.UTC)
	want := task.Filter{Status: task.Failure, Substatus: task.SubFinal, Behavior: "work", Affinity: "a", AffinityPrefix: "a", Node: "n", Creator: "ada", Tag: "nightly", Work: true,
		CreatedFrom: from, CreatedTo: to, EndedFrom: from, EndedTo: to}
	if f != want {
		t.Errorf("set %+v, want %+v", f, want)
	}
	if field, problem := f.Problem(); problem != "" {
		t.Errorf("%s: %s", field, problem)
	}
	names, values := task.FilterFields()
	if len(names) != 13 || len(values) != len(names) {
		t.Errorf("fields %v, %v", names, values)
	}
	for field, text := range map[string]string{"color": "red", "status": "DONE", "substatus": "none", "behavior": "No Behavior", "affinity": "", "created-from": "yesterday", "work": "false", "tag": "a b"} {
		if err := f.Set(field, text); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s=%s: %v", field, text, err)
		}
	}
	for field, f := range map[string]task.Filter{"status": {Status: 9}, "substatus": {Substatus: 99}, "created-from": {CreatedFrom: to, CreatedTo: from}, "ended-from": {EndedFrom: to, EndedTo: to},
		"affinity-prefix": {Affinity: "b", AffinityPrefix: "a"}} {
		if got, problem := f.Problem(); got != field || problem == "" {
			t.Errorf("problem of %q, %q; want one of %s", got, problem, field)
		}
	}
}

// A bound is stored in milliseconds since 1970, of which 0 is none: what is not later is no bound, and is refused.
func TestFilter_RefusesATimeThatWouldBeNoBound(t *testing.T) {
	of := map[string]func(*task.Filter) *time.Time{
		"created-from": func(f *task.Filter) *time.Time { return &f.CreatedFrom }, "created-to": func(f *task.Filter) *time.Time { return &f.CreatedTo },
		"ended-from": func(f *task.Filter) *time.Time { return &f.EndedFrom }, "ended-to": func(f *task.Filter) *time.Time { return &f.EndedTo },
	}
	const limit = "after 1970-01-01T00:00:00Z"
	for field, bound := range of {
		for _, text := range []string{"0001-01-01T00:00:00Z", "1969-12-31T23:59:59.999Z", "1970-01-01T00:00:00Z", "1970-01-01T01:00:00+01:00", "1970-01-01T00:00:00.0009Z"} {
			_, err := task.ParseFilter([]string{field + "=" + text})
			if err == nil || !strings.HasPrefix(err.Error(), field+": ") || !strings.Contains(err.Error(), limit) {
				t.Errorf("%s=%s: %v", field, text, err)
			}
		}
		f, err := task.ParseFilter([]string{field + "=1970-01-01T00:00:00.001Z"})
		if err != nil || bound(&f).UnixMilli() != 1 {
			t.Errorf("%s at the first millisecond: %v, %v", field, bound(&f), err)
		}
		if got, problem := f.Problem(); problem != "" {
			t.Errorf("%s at the first millisecond: %s: %s", field, got, problem)
		}
		for _, early := range []int64{-1, 0, 999_999} {
			f := task.Filter{}
			*bound(&f) = time.Unix(0, early)
			if got, problem := f.Problem(); got != field || !strings.Contains(problem, limit) {
				t.Errorf("%s, %d ns after 1970: problem of %q, %q", field, early, got, problem)
			}
		}
	}
}

func TestFilter_RefusesAnAffinityWithASlash(t *testing.T) {
	for field, f := range map[string]task.Filter{"affinity": {Affinity: "a/b"}, "affinity-prefix": {AffinityPrefix: "a/"}} {
		if got, problem := f.Problem(); got != field || !strings.Contains(problem, "slash") {
			t.Errorf("%+v: problem of %q, %q", f, got, problem)
		}
	}
}
