package segmentation

import (
	"cmp"
	"fmt"
	"slices"
)

// checkContents returns what is wrong with the list of an explicit plan.
func checkContents(all []Content) error {
	if len(all) == 0 {
		return invalid("explicit", "empty, want at least one content")
	}
	for i, c := range all {
		if err := c.check(fmt.Sprintf("explicit[%d]", i)); err != nil {
			return err
		}
		if first := all[0].Kind; (c.Kind == Numeric) != (first == Numeric) {
			return invalid(fmt.Sprintf("explicit[%d].kind", i), "%q beside %q: numbers and texts do not mix", c.Kind, first)
		}
	}
	return checkApart(all)
}

// check returns what is wrong with a content, which stands in a list by that name.
func (c Content) check(name string) error {
	numbers, bounds, text := c.From != 0 || c.To != 0, c.Lower != "" || c.Upper != "", c.Text != ""
	switch c.Kind {
	case Numeric:
		if c.From >= c.To {
			return invalid(name+".from", "%d, want less than to, which is %d", c.From, c.To)
		}
		numbers = false
	case Interval:
		if c.Upper != "" && c.Lower >= c.Upper {
			return invalid(name+".lower", "%.64q, want less than upper, which is %.64q", c.Lower, c.Upper)
		}
		bounds = false
	case Prefix, Exact:
		text = false
	default:
		return invalid(name+".kind", "%.64q, want %q, %q, %q or %q", string(c.Kind), Numeric, Interval, Prefix, Exact)
	}
	switch {
	case numbers:
		return invalid(name+".from", "the kind %q has no numbers, want from and to zero", string(c.Kind))
	case bounds:
		return invalid(name+".lower", "the kind %q has no bounds of text, want lower and upper empty", string(c.Kind))
	case text:
		return invalid(name+".text", "the kind %q has no text, want it empty", string(c.Kind))
	}
	return nil
}

// checkApart refuses two contents that a key belongs to. In the order of their beginnings two neighbours overlap if any
// two do.
func checkApart(all []Content) error {
	order := make([]int, len(all))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(all[a].From, all[b].From), cmp.Compare(all[a].first(), all[b].first()))
	})
	for i := 1; i < len(order); i++ {
		before, after := order[i-1], order[i]
		if all[before].reaches(all[after]) {
			const say = "%s and explicit[%d], which is %s, overlap"
			return invalid(fmt.Sprintf("explicit[%d]", max(before, after)), say,
				all[max(before, after)], min(before, after), all[min(before, after)])
		}
	}
	return nil
}

// first returns the lowest text that belongs to the content.
func (c Content) first() string {
	if c.Kind == Interval {
		return c.Lower
	}
	return c.Text
}

// reaches reports whether the first key of another content, which is not before that of c, belongs to c.
func (c Content) reaches(other Content) bool {
	if c.Kind == Numeric {
		return c.ContainsNumber(other.From)
	}
	return c.Contains(other.first())
}
