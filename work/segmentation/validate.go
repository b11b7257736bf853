package segmentation

import (
	"fmt"
	"math"
	"slices"
)

// Validate returns an *InvalidError unless the plan can be carried out: it names the field, and the limit where there
// is one.
func (p Plan) Validate() error {
	if err := p.checkFields(); err != nil {
		return err
	}
	switch p.Kind {
	case Numeric:
		return p.checkNumbers()
	case Interval, Prefix, Exact, OID:
		_, _, err := p.texts()
		return err
	case Explicit:
		if bytes := p.Bytes(); bytes > MaxBytes {
			return invalid("explicit", "%d bytes exceed the limit of %d", bytes, MaxBytes)
		}
		return checkContents(p.Explicit)
	}
	return nil
}

// checkFields refuses an unknown kind, and a field that says nothing for the kind.
func (p Plan) checkFields() error {
	kinds := []Kind{None, Numeric, Interval, Prefix, Exact, OID, Explicit}
	if !slices.Contains(kinds, p.Kind) {
		return invalid("kind", "%.64q, want one of %q", string(p.Kind), kinds)
	}
	for _, f := range [...]struct {
		name string
		set  bool
		of   []Kind
	}{
		{"from", p.From != 0, []Kind{Numeric}},
		{"to", p.To != 0, []Kind{Numeric}},
		{"size", p.Size != 0, []Kind{Numeric}},
		{"buckets", p.Buckets != 0, []Kind{Numeric}},
		{"alphabets", len(p.Alphabets) > 0, []Kind{Interval, Prefix, Exact}},
		{"depth", p.Depth != 0, []Kind{Interval, Prefix, Exact, OID}},
		{"explicit", len(p.Explicit) > 0, []Kind{Explicit}},
	} {
		if f.set && !slices.Contains(f.of, p.Kind) {
			return invalid(f.name, "the kind %q has none, want it zero", string(p.Kind))
		}
	}
	return nil
}

func (p Plan) checkNumbers() error {
	switch {
	case p.From >= p.To:
		return invalid("from", "%d, want less than to, which is %d", p.From, p.To)
	case p.Size < 0:
		return invalid("size", "%d, want 1 to %d", p.Size, int64(math.MaxInt64))
	case p.Buckets < 0 || p.Buckets > MaxBuckets:
		return invalid("buckets", "%d, want 1 to %d", p.Buckets, MaxBuckets)
	case p.Size == 0 && p.Buckets == 0:
		return invalid("size", "0 as buckets, want one of them from 1 on")
	case p.Size > 0 && p.Buckets > 0:
		return invalid("buckets", "%d beside the size %d, want one of them alone", p.Buckets, p.Size)
	}
	if total := p.numbers().total; total > MaxBuckets {
		return invalid("size", "%d makes %d buckets, the limit is %d", p.Size, total, MaxBuckets)
	}
	return nil
}

// texts returns the combinations of characters that are the bounds, and the number of buckets.
func (p Plan) texts() (texts, int64, error) {
	t := texts{depth: max(p.Depth, 1)}
	alphabets := p.Alphabets
	if p.Kind == OID {
		alphabets = []string{"0-9a-f"}
	}
	if p.Depth < 0 || p.Depth > MaxPositions {
		return t, 0, invalid("depth", "%d, want 0 to %d", p.Depth, MaxPositions)
	}
	if err := checkAlphabets(alphabets, t.depth); err != nil {
		return t, 0, err
	}
	for i, text := range alphabets {
		a, err := parseAlphabet(text)
		if err != nil {
			return t, 0, invalid(fmt.Sprintf("alphabets[%d]", i), "%v", err)
		}
		t.alphabets = append(t.alphabets, a)
	}
	extra := int64(0)
	if p.Covers() {
		extra = 1
	}
	n, ok := t.count(MaxBuckets - extra)
	if !ok {
		return t, 0, invalid("depth", "%d of %d alphabets makes more than %d buckets", t.depth, len(alphabets), MaxBuckets)
	}
	return t, n + extra, nil
}

func checkAlphabets(alphabets []string, depth int64) error {
	bytes := 0
	for _, text := range alphabets {
		bytes += len(text)
	}
	switch n := int64(len(alphabets)); {
	case n == 0:
		return invalid("alphabets", "none, want 1 to %d", MaxPositions)
	case n > MaxPositions || n*depth > MaxPositions:
		return invalid("alphabets", "%d with the depth %d, want %d positions at most", n, depth, MaxPositions)
	case bytes > MaxAlphabetBytes:
		return invalid("alphabets", "%d bytes exceed the limit of %d", bytes, MaxAlphabetBytes)
	}
	return nil
}
