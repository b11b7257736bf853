package segmentation

import (
	"fmt"
	"strings"
)

// Kind names a way to cut a set, and what the bounds of a bucket mean.
type Kind string

// The kinds. A plan of the kind OID has buckets of the kind Interval, and one of the kind Explicit has buckets of the
// kinds in its list.
const (
	None     Kind = ""         // one bucket holds everything
	Numeric  Kind = "numeric"  // ranges of numbers
	Interval Kind = "interval" // intervals of texts
	Prefix   Kind = "prefix"   // texts that begin alike
	Exact    Kind = "exact"    // single texts
	OID      Kind = "oid"      // intervals of texts that begin with digits of a hexadecimal number
	Explicit Kind = "explicit" // what a list says
)

// Content says which keys belong to a bucket. The Kind says which of the other fields count; they are zero elsewhere.
type Content struct {
	// Kind is None, Numeric, Interval, Prefix or Exact.
	Kind Kind
	// From and To bound the numbers n of Numeric: From <= n < To.
	From, To int64
	// Lower and Upper bound the texts t of Interval by their bytes: Lower <= t < Upper. An Upper of "" is no bound, and
	// neither is a Lower of "".
	Lower, Upper string
	// Text is the beginning of the texts of Prefix, and the one text of Exact.
	Text string
}

// Bucket is a part of the set of a partition.
type Bucket struct {
	// Number is 1 for the bucket of the lowest keys, and at most Plan.Total.
	Number int64
	Content
}

// Contains reports whether a key of text belongs to the content. None has every key, and Numeric has no text.
func (c Content) Contains(key string) bool {
	switch c.Kind {
	case None:
		return true
	case Interval:
		return c.Lower <= key && (c.Upper == "" || key < c.Upper)
	case Prefix:
		return strings.HasPrefix(key, c.Text)
	case Exact:
		return key == c.Text
	}
	return false
}

// ContainsNumber reports whether a number belongs to the content. None has every number, and the kinds of text have no
// number.
func (c Content) ContainsNumber(n int64) bool {
	switch c.Kind {
	case None:
		return true
	case Numeric:
		return c.From <= n && n < c.To
	}
	return false
}

// String returns the bounds for people, such as "[10, 20)", `["a", "b")`, `"ab"...` or "everything".
func (c Content) String() string {
	switch c.Kind {
	case None:
		return "everything"
	case Numeric:
		return fmt.Sprintf("[%d, %d)", c.From, c.To)
	case Interval:
		return c.interval()
	case Prefix:
		return fmt.Sprintf("%.64q...", c.Text)
	case Exact:
		return fmt.Sprintf("%.64q", c.Text)
	}
	return fmt.Sprintf("content of the unknown kind %q", string(c.Kind))
}

func (c Content) interval() string {
	switch {
	case c.Lower == "" && c.Upper == "":
		return "everything"
	case c.Lower == "":
		return fmt.Sprintf("below %.64q", c.Upper)
	case c.Upper == "":
		return fmt.Sprintf("from %.64q on", c.Lower)
	}
	return fmt.Sprintf("[%.64q, %.64q)", c.Lower, c.Upper)
}
