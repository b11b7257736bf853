package cron

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// field describes one of the seven fields.
type field struct {
	name     string
	min, max int
	step     int    // the largest one
	names    string // of three letters each, the first one that of min
}

// The numbers of the fields, from 0 on.
const (
	secondField = iota
	minuteField
	hourField
	monthDayField
	monthField
	weekdayField
	yearField
)

var fields = [...]field{
	{"second", 0, 59, 59, ""},
	{"minute", 0, 59, 59, ""},
	{"hour", 0, 23, 23, ""},
	{"day-of-month", 1, 31, 31, ""},
	{"month", 1, 12, 12, "JANFEBMARAPRMAYJUNJULAUGSEPOCTNOVDEC"},
	{"day-of-week", 1, 7, 7, "SUNMONTUEWEDTHUFRISAT"},
	{"year", minYear, maxYear, maxYear - minYear + 1, ""},
}

// list reads numbers, names, ranges and steps between commas. The set counts from base.
func (f *field) list(text string, base int) (all set, err error) {
	for element := range strings.SplitSeq(text, ",") {
		lo, hi, step, err := f.element(element)
		if err != nil {
			return set{}, err
		}
		size := f.max - f.min + 1
		if hi < lo {
			hi += size
		}
		for n := lo; n <= hi; n += step {
			all.add((n-f.min)%size + f.min - base)
		}
	}
	return all, nil
}

// element reads one element of a list: *, a, a-b, and each with a step. hi is below lo where the range wraps.
func (f *field) element(text string) (lo, hi, step int, err error) {
	span, every, stepped := strings.Cut(text, "/")
	from, to, ranged := strings.Cut(span, "-")
	lo, hi, step = f.min, f.max, 1
	var low, high, stride error
	if stepped {
		step, stride = f.parseStep(every)
	}
	if span != "*" && span != "" {
		lo, low = f.value(from)
		if ranged {
			hi, high = f.value(to)
		} else if !stepped {
			hi = lo
		}
	}
	err = cmp.Or(stride, low, high)
	switch {
	case text == "":
		err = errors.New("an element of the list is empty")
	case err != nil:
	case stepped && strings.ContainsFunc(span, unicode.IsLetter):
		err = fmt.Errorf("%s: a step goes with numbers, not with names", text)
	case hi < lo && f.max == maxYear:
		err = fmt.Errorf("%s: years do not begin again after the last one", text)
	}
	return lo, hi, step, err
}

// isInterval reports whether a list has an element that is a * or has a step without a range.
func isInterval(text string) bool {
	for element := range strings.SplitSeq(text, ",") {
		span, _, stepped := strings.Cut(element, "/")
		if span == "*" || stepped && !strings.Contains(span, "-") {
			return true
		}
	}
	return false
}

func (f *field) parseStep(text string) (int, error) {
	step, err := strconv.ParseUint(text, 10, 16)
	if err != nil || step < 1 || int(step) > f.step {
		return 0, fmt.Errorf("step %q, want 1 to %d", text, f.step)
	}
	return int(step), nil
}

// value reads a number or a name.
func (f *field) value(text string) (int, error) {
	if i := strings.Index(f.names, text); len(text) == 3 && i >= 0 && i%3 == 0 {
		return f.min + i/3, nil
	}
	n, err := strconv.ParseUint(text, 10, 16)
	if errors.Is(err, strconv.ErrRange) {
		err = nil // n is the largest number, and above max
	}
	switch {
	case err != nil && f.names != "":
		last := f.names[len(f.names)-3:]
		return 0, fmt.Errorf("%q is neither a number nor a name from %s to %s", text, f.names[:3], last)
	case err != nil:
		return 0, fmt.Errorf("%q is not a number", text)
	case int(n) < f.min:
		return 0, fmt.Errorf("%s is below %d%s", text, f.min, f.counted())
	case int(n) > f.max:
		return 0, fmt.Errorf("%s is above %d%s", text, f.max, f.counted())
	}
	return int(n), nil
}

// counted says how the numbers of a field are counted, where other dialects do it otherwise.
func (f *field) counted() string {
	if f == &fields[weekdayField] {
		return ": weekdays go from 1 = SUN to 7 = SAT"
	}
	return ""
}
