package segmentation_test

import (
	"math"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"taskledger/work/segmentation"
)

type (
	plan    = segmentation.Plan
	content = segmentation.Content
)

// drawAlphabet draws characters in the order of their bytes, some of them as ranges, from all planes of Unicode.
func drawAlphabet(t *rapid.T) string {
	runes := rapid.SliceOfNDistinct(rapid.Rune(), 1, 4, rapid.ID[rune]).Draw(t, "characters")
	runes = slices.DeleteFunc(runes, func(r rune) bool { return !utf8.ValidRune(r) })
	if len(runes) == 0 {
		runes = []rune{'a'}
	}
	slices.Sort(runes)
	var b strings.Builder
	ended := true // the last character ends a range
	for i, r := range runes {
		if ended = !ended && r-runes[i-1] < 20 && rapid.Bool().Draw(t, "range"); ended {
			b.WriteByte('-')
		}
		if r == '-' || r == '\\' {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// drawTexts draws a plan of a kind of combinations with few buckets.
func drawTexts(t *rapid.T, kinds ...segmentation.Kind) plan {
	for {
		p := plan{Kind: rapid.SampledFrom(kinds).Draw(t, "kind")}
		if p.Kind == segmentation.None {
			return p
		}
		p.Depth = rapid.Int64Range(0, 2).Draw(t, "depth")
		if p.Kind != segmentation.OID {
			for range rapid.IntRange(1, 2).Draw(t, "positions") {
				p.Alphabets = append(p.Alphabets, drawAlphabet(t))
			}
		}
		if p.Validate() == nil && p.Total() <= 3000 {
			return p
		}
	}
}

// drawKey draws any bytes, often near a bound of the plan.
func drawKey(t *rapid.T, p plan) string {
	b, ok := p.Bucket(rapid.Int64Range(1, p.Total()).Draw(t, "near"))
	if !ok {
		t.Fatal("no such bucket")
	}
	near := []string{b.Lower, b.Upper, b.Text}
	return rapid.OneOf(
		rapid.String(),
		rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }),
		rapid.Map(rapid.SampledFrom(near), func(s string) string { return s }),
		rapid.Map(rapid.SampledFrom(near), func(s string) string { return s + "\x00" }),
		rapid.Map(rapid.SampledFrom(near), func(s string) string { return s[:max(len(s)-1, 0)] }),
		rapid.Map(rapid.SampledFrom(near), func(s string) string { return s[:max(len(s)-1, 0)] + "\xff" }),
	).Draw(t, "key")
}

// holders returns the numbers of the buckets that have a key of text.
func holders(p plan, key string) (in []int64) {
	for n := range p.Total() {
		if b, ok := p.Bucket(n + 1); ok && b.Contains(key) {
			in = append(in, b.Number)
		}
	}
	return in
}

func TestBuckets_EveryTextLiesInExactlyOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawTexts(t, segmentation.None, segmentation.Interval, segmentation.OID)
		key := drawKey(t, p)
		if in := holders(p, key); len(in) != 1 || !p.Covers() {
			t.Fatalf("%q lies in the buckets %d", key, in)
		}
	})
}

func TestBuckets_NoTextLiesInTwo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawTexts(t, segmentation.Prefix, segmentation.Exact)
		key := drawKey(t, p)
		if in := holders(p, key); len(in) > 1 || p.Covers() {
			t.Fatalf("%q lies in the buckets %d", key, in)
		}
	})
}

func TestBuckets_OfTextsAscendAndMeet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawTexts(t, segmentation.Interval, segmentation.OID, segmentation.Prefix, segmentation.Exact)
		var before segmentation.Bucket
		for n := range p.Total() {
			b, ok := p.Bucket(n + 1)
			switch {
			case !ok || b.Number != n+1:
				t.Fatalf("bucket %d is %v, %t", n+1, b, ok)
			case b.Kind == segmentation.Interval && (b.Lower != before.Upper || b.Upper != "" && b.Lower >= b.Upper):
				t.Fatalf("bucket %d is %s after %s", b.Number, b, before)
			case b.Kind != segmentation.Interval && n > 0 && b.Text <= before.Text:
				t.Fatalf("bucket %d is %s after %s", b.Number, b, before)
			}
			before = b
		}
		if before.Upper != "" {
			t.Fatalf("the last bucket ends: %s", before)
		}
	})
}

// numberOf draws numbers from all of int64, often at its ends.
func numberOf() *rapid.Generator[int64] {
	ends := []int64{math.MinInt64, math.MinInt64 + 1, -1, 0, 1, math.MaxInt64 - 1, math.MaxInt64}
	return rapid.OneOf(rapid.Int64(), rapid.SampledFrom(ends), rapid.Int64Range(-20, 20))
}

func drawNumeric(t *rapid.T) plan {
	p := plan{Kind: segmentation.Numeric}
	p.From = numberOf().Draw(t, "from")
	p.To = numberOf().Filter(func(to int64) bool { return to != p.From }).Draw(t, "to")
	p.From, p.To = min(p.From, p.To), max(p.From, p.To)
	if rapid.Bool().Draw(t, "by size") {
		least := (uint64(p.To)-uint64(p.From)-1)/segmentation.MaxBuckets + 1
		p.Size = rapid.OneOf(rapid.Int64Range(int64(least), math.MaxInt64), rapid.Just(int64(least))).Draw(t, "size")
	} else {
		p.Buckets = rapid.OneOf(rapid.Int64Range(1, 30), rapid.Int64Range(1, segmentation.MaxBuckets)).Draw(t, "buckets")
	}
	if err := p.Validate(); err != nil {
		t.Fatal(err)
	}
	return p
}

func TestBuckets_EveryNumberLiesInExactlyOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawNumeric(t)
		n := rapid.OneOf(rapid.Int64Range(p.From, p.To-1), numberOf()).Draw(t, "number")
		in := int64(0)
		lowest, _ := p.Bucket(1)
		lower, upper := int64(1), p.Total() // between them lies the bucket
		for lower <= upper {
			b, ok := p.Bucket(lower + (upper-lower)/2)
			switch {
			case !ok:
				t.Fatalf("no bucket %d", lower+(upper-lower)/2)
			case b.ContainsNumber(n):
				in = b.Number
				lower = upper + 1
			case n < b.From:
				upper = b.Number - 1
			default:
				lower = b.Number + 1
			}
		}
		if inside := p.From <= n && n < p.To; inside != (in > 0) {
			t.Fatalf("%d lies in bucket %d of [%d, %d), the first of which is %s", n, in, p.From, p.To, lowest)
		}
		for _, neighbour := range []int64{in - 1, in + 1} {
			if b, ok := p.Bucket(neighbour); ok && in > 0 && b.ContainsNumber(n) {
				t.Fatalf("%d lies in the buckets %d and %d", n, in, neighbour)
			}
		}
	})
}

func TestBuckets_OfNumbersMeetAndDifferByOneAtMost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawNumeric(t)
		total := p.Total()
		width := uint64(p.To) - uint64(p.From)
		least := width / uint64(total)
		at := rapid.OneOf(rapid.Int64Range(1, total), rapid.SampledFrom([]int64{1, total})).Draw(t, "bucket")
		b, _ := p.Bucket(at)
		size := uint64(b.To) - uint64(b.From)
		switch {
		case size != least && size != least+1 || size == 0 || b.From >= b.To:
			t.Fatalf("bucket %d of %d is %s, others have %d", at, total, b, least)
		case p.Size > 0 && size > uint64(p.Size):
			t.Fatalf("%s has more than %d", b, p.Size)
		case p.Size > 0 && total > 1 && (width-1)/uint64(total-1)+1 <= uint64(p.Size):
			t.Fatalf("%d buckets, and one less would do", total)
		case p.Buckets > 0 && uint64(total) != min(uint64(p.Buckets), width):
			t.Fatalf("%d buckets of %d", total, p.Buckets)
		case at == 1 && b.From != p.From || at == total && b.To != p.To:
			t.Fatalf("bucket %d of %d is %s of [%d, %d)", at, total, b, p.From, p.To)
		}
		if next, ok := p.Bucket(at + 1); ok && next.From != b.To {
			t.Fatalf("%s follows %s", next, b)
		}
	})
}

func TestBuckets_EndWhereTheTotalSays(t *testing.T) {
	explicit := plan{Kind: segmentation.Explicit, Explicit: []content{
		{Kind: segmentation.Exact, Text: "z"},
		{Kind: segmentation.Prefix, Text: "a"},
	}}
	for _, c := range []struct {
		plan  plan
		total int64
	}{
		{plan{}, 1},
		{plan{Kind: segmentation.Numeric, To: 10, Buckets: 7}, 7},
		{plan{Kind: segmentation.Numeric, To: 10, Size: 4}, 3},
		{plan{Kind: segmentation.Numeric, To: 10, Buckets: 11}, 10},
		{plan{Kind: segmentation.Numeric, From: math.MinInt64, To: math.MaxInt64, Buckets: 1}, 1},
		{plan{Kind: segmentation.Numeric, From: math.MinInt64, To: math.MaxInt64, Size: math.MaxInt64}, 3},
		{plan{Kind: segmentation.Numeric, To: math.MaxInt64, Buckets: segmentation.MaxBuckets}, segmentation.MaxBuckets},
		{plan{Kind: segmentation.OID}, 17},
		{plan{Kind: segmentation.OID, Depth: 2}, 257},
		{plan{Kind: segmentation.OID, Depth: 7}, 1<<28 + 1},
		{plan{Kind: segmentation.Interval, Alphabets: []string{"0-9", "a-z"}, Depth: 2}, 260*260 + 1},
		{plan{Kind: segmentation.Prefix, Alphabets: []string{"0-9", "a-z"}}, 260},
		{plan{Kind: segmentation.Exact, Alphabets: []string{"\x00-\U0010ffff"}}, 0x110000 - 0x800},
		{explicit, 2},
	} {
		if err := c.plan.Validate(); err != nil {
			t.Errorf("%+v: %v", c.plan, err)
		}
		if got := c.plan.Total(); got != c.total {
			t.Errorf("%+v has %d buckets, want %d", c.plan, got, c.total)
		}
		for _, n := range []int64{math.MinInt64, -1, 0, c.total + 1, math.MaxInt64} {
			if b, ok := c.plan.Bucket(n); ok {
				t.Errorf("%+v has the bucket %d: %s", c.plan, n, b)
			}
		}
		for _, n := range []int64{1, c.total} {
			if b, ok := c.plan.Bucket(n); !ok || b.Number != n {
				t.Errorf("%+v: bucket %d is %v, %t", c.plan, n, b, ok)
			}
		}
	}
	if b, _ := explicit.Bucket(1); !b.Contains("z") || b.Contains("a") {
		t.Errorf("the first bucket is %s, want the one that is listed first", b)
	}
}

// The sequences resemble those in midPoint's tests of static buckets.
func TestBuckets_HaveTheBoundsThatAreWrittenDown(t *testing.T) {
	alphabets := []string{"qx", "0-1a"}
	for _, c := range []struct {
		plan plan
		want string
	}{
		{plan{}, "everything"},
		{plan{Kind: segmentation.Numeric, From: -1, To: 9, Buckets: 3}, "[-1, 3) [3, 6) [6, 9)"},
		{plan{Kind: segmentation.Interval, Alphabets: alphabets},
			`below "q0" ["q0", "q1") ["q1", "qa") ["qa", "x0") ["x0", "x1") ["x1", "xa") from "xa" on`},
		{plan{Kind: segmentation.Prefix, Alphabets: alphabets}, `"q0"... "q1"... "qa"... "x0"... "x1"... "xa"...`},
		{plan{Kind: segmentation.Exact, Alphabets: []string{`\-\\a`}}, `"-" "\\" "a"`},
		{plan{Kind: segmentation.Exact, Alphabets: []string{"ab"}, Depth: 2}, `"aa" "ab" "ba" "bb"`},
		{plan{Kind: segmentation.Exact, Alphabets: []string{"\ud7ff-\ue000"}}, `"\ud7ff" "\ue000"`},
	} {
		var got []string
		for n := range c.plan.Total() {
			b, _ := c.plan.Bucket(n + 1)
			got = append(got, b.String())
		}
		if all := strings.Join(got, " "); all != c.want {
			t.Errorf("%+v: got %s, want %s", c.plan, all, c.want)
		}
	}
}
