package segmentation_test

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"taskledger/internal/message"
	"taskledger/work/segmentation"
)

func texts(kind segmentation.Kind, depth int64, alphabets ...string) plan {
	return plan{Kind: kind, Depth: depth, Alphabets: alphabets}
}

func listed(all ...content) plan { return plan{Kind: segmentation.Explicit, Explicit: all} }

func TestValidate_NamesFieldAndLimit(t *testing.T) {
	const (
		numeric  = segmentation.Numeric
		interval = segmentation.Interval
		prefix   = segmentation.Prefix
		exact    = segmentation.Exact
	)
	many := make([]content, (segmentation.MaxBytes-64)/segmentation.ContentBytes+1)
	for i := range many {
		many[i] = content{Kind: numeric, From: int64(i), To: int64(i) + 1}
	}
	for _, c := range []struct {
		plan           plan
		field, problem string
	}{
		{plan{Kind: "hex"}, "kind", `"hex", want one of`},
		{plan{Size: 1}, "size", "want it zero"},
		{texts("", 0, "a"), "alphabets", "want it zero"},
		{texts(segmentation.OID, 1, "a"), "alphabets", "want it zero"},
		{plan{Kind: numeric, From: 5, To: 5, Size: 1}, "from", "5, want less than to, which is 5"},
		{plan{Kind: numeric, From: math.MaxInt64, To: math.MinInt64, Size: 1}, "from", "want less than to"},
		{plan{Kind: numeric, To: 5}, "size", "0 as buckets, want one of them from 1 on"},
		{plan{Kind: numeric, To: 5, Size: -1}, "size", "-1, want 1 to"},
		{plan{Kind: numeric, To: 5, Buckets: -1}, "buckets", "-1, want 1 to 1000000000"},
		{plan{Kind: numeric, To: 5, Size: 1, Buckets: 1}, "buckets", "1 beside the size 1"},
		{plan{Kind: numeric, To: math.MaxInt64, Buckets: 1_000_000_001}, "buckets", "1000000001, want 1 to 1000000000"},
		{plan{Kind: numeric, To: 1_000_000_001, Size: 1}, "size", "1 makes 1000000001 buckets, the limit is 1000000000"},
		{plan{Kind: numeric, From: math.MinInt64, To: math.MaxInt64, Size: 1}, "size", "18446744073709551615"},
		{texts(interval, 0), "alphabets", "none, want 1 to 64"},
		{texts(interval, 0, "a", ""), "alphabets[1]", "empty"},
		{texts(interval, 0, "ba"), "alphabets[0]", "'a' comes after 'b'"},
		{texts(interval, 0, "aba"), "alphabets[0]", "'a' comes after 'b'"},
		{texts(prefix, 0, "a-ff"), "alphabets[0]", "'f' comes after 'f'"},
		{texts(exact, 0, "z-a"), "alphabets[0]", "range z-a descends"},
		{texts(exact, 0, "-a"), "alphabets[0]", `"-" stands between two characters`},
		{texts(exact, 0, "a-"), "alphabets[0]", "ends where a character should follow"},
		{texts(exact, 0, "a-c-e"), "alphabets[0]", `"-" stands between two characters`},
		{texts(exact, 0, `a\`), "alphabets[0]", `ends with "\"`},
		{texts(exact, 0, "a\xff"), "alphabets[0]", "byte 0xff is no UTF-8"},
		{texts(exact, 0, strings.Repeat("a", 4097)), "alphabets", "4097 bytes exceed the limit of 4096"},
		{texts(exact, 33, "a", "b"), "alphabets", "2 with the depth 33, want 64 positions at most"},
		{texts(exact, 65, "a"), "depth", "65, want 0 to 64"},
		{texts(exact, -1, "a"), "depth", "-1, want 0 to 64"},
		{texts(interval, 9, "0-9"), "depth", "makes more than 1000000000 buckets"},
		{texts(exact, 64, "\x00-\U0010ffff"), "depth", "makes more than 1000000000 buckets"},
		{texts(segmentation.OID, 8), "depth", "8 of 1 alphabets makes more than 1000000000 buckets"},
		{listed(), "explicit", "empty"},
		{listed(many...), "explicit", "196640 bytes exceed the limit of 196608"},
		{listed(content{Kind: exact, Text: strings.Repeat("x", 192<<10)}), "explicit", "exceed the limit of 196608"},
		{listed(content{}), "explicit[0].kind", `"", want`},
		{listed(content{Kind: segmentation.OID}), "explicit[0].kind", `"oid", want`},
		{listed(many[0], content{Kind: exact}), "explicit[1].kind", "numbers and texts do not mix"},
		{listed(content{Kind: exact}, many[0]), "explicit[1].kind", "numbers and texts do not mix"},
		{listed(content{Kind: numeric, From: 2, To: 1}), "explicit[0].from", "2, want less than to, which is 1"},
		{listed(content{Kind: interval, Lower: "b", Upper: "b"}), "explicit[0].lower", `"b", want less than upper`},
		{listed(content{Kind: interval, To: 1}), "explicit[0].from", "no numbers"},
		{listed(content{Kind: prefix, Upper: "b"}), "explicit[0].lower", "no bounds of text"},
		{listed(content{Kind: interval, Text: "b"}), "explicit[0].text", "no text"},
		{listed(many[0], many[0]), "explicit[1]", "[0, 1) and explicit[0], which is [0, 1), overlap"},
	} {
		err := c.plan.Validate()
		invalid, ok := errors.AsType[*segmentation.InvalidError](err)
		if !ok || invalid.Field != c.field || !strings.Contains(invalid.Problem, c.problem) {
			t.Errorf("%.200v: got %v, want %s: %s", c.plan, err, c.field, c.problem)
		}
	}
	if err := listed(many[:len(many)-1]...).Validate(); err != nil {
		t.Errorf("a list of exactly 192 KiB is refused: %v", err)
	}
}

func TestTotal_OfAPlanThatIsRefusedIsNone(t *testing.T) {
	for _, p := range []plan{
		{Kind: "hex"},
		{Kind: segmentation.Numeric},
		{Kind: segmentation.Numeric, From: 1, Size: 1},
		{Kind: segmentation.Interval},
		{Kind: segmentation.OID, Depth: 8},
		{Kind: segmentation.Explicit},
	} {
		if b, ok := p.Bucket(1); p.Total() != 0 || ok {
			t.Errorf("%+v has %d buckets, the first is %v", p, p.Total(), b)
		}
	}
}

// drawContent draws contents of text that are close to each other.
func drawContent(t *rapid.T) content {
	text := rapid.StringMatching(`[ab\x{ff}]{0,3}`)
	switch kind := rapid.SampledFrom([]segmentation.Kind{"interval", "prefix", "exact"}).Draw(t, "kind"); kind {
	case segmentation.Interval:
		return content{Kind: kind, Lower: text.Draw(t, "lower"), Upper: text.Draw(t, "upper")}
	default:
		return content{Kind: kind, Text: text.Draw(t, "text")}
	}
}

// The first key of each content is tried: where two contents overlap, the first key of one of them belongs to both.
func TestExplicit_IsRefusedWhereAKeyLiesInTwoBuckets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := listed(drawContent(t), drawContent(t))
		if rapid.Bool().Draw(t, "three") {
			p.Explicit = append(p.Explicit, drawContent(t))
		}
		for i, c := range p.Explicit {
			if listed(p.Explicit[i]).Validate() != nil {
				t.Skip("refused by itself", c)
			}
		}
		shared := ""
		twice := false
		for _, c := range p.Explicit {
			for _, key := range []string{c.Lower, c.Text} {
				if in := holders(p, key); len(in) > 1 {
					shared, twice = key, true
				}
			}
		}
		err := p.Validate()
		if twice != (err != nil) {
			t.Fatalf("%s: %q is in two: %t, and the list is refused: %v", p.Explicit, shared, twice, err)
		}
		if err != nil && !strings.Contains(err.Error(), "overlap") {
			t.Fatal(err)
		}
	})
}

func TestPlan_TravelsAsAMessage(t *testing.T) {
	sent := plan{
		Kind:      segmentation.Interval,
		From:      math.MinInt64,
		To:        math.MaxInt64,
		Size:      1,
		Buckets:   2,
		Alphabets: []string{"0-9", "a-z"},
		Depth:     3,
		Explicit:  []content{{Kind: segmentation.Interval, From: 1, To: 2, Lower: "a", Upper: "b", Text: "c"}},
	}
	var got plan
	if err := message.Decode(message.Encode(&sent), 1<<10, &got); err != nil || !reflect.DeepEqual(got, sent) {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestBytes_AreAtLeastThoseOfTheEncodedPlan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := rapid.Make[plan]().Draw(t, "plan")
		p.Kind = segmentation.Explicit
		for i := range p.Explicit {
			p.Explicit[i].Kind = segmentation.Interval // the longest one
		}
		if encoded := len(message.Encode(&p)); int64(encoded) > p.Bytes() {
			t.Fatalf("%d bytes, encoded %d", p.Bytes(), encoded)
		}
	})
}
