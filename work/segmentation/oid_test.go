package segmentation_test

import (
	"fmt"
	"testing"

	"taskledger/work/segmentation"
)

func TestBuckets_OfOIDsMeetAtEachOfTheirFirstDigits(t *testing.T) {
	for _, c := range []struct {
		depth int64
		want  int
	}{{1, 16}, {2, 256}} {
		p := plan{Kind: segmentation.OID, Depth: c.depth}
		if p.Total() != int64(c.want)+1 {
			t.Fatalf("depth %d: %d buckets, want %d", c.depth, p.Total(), c.want+1)
		}
		bound := func(n int) string { return fmt.Sprintf("%0*x", c.depth, n) }
		for n := range c.want + 1 {
			want := fmt.Sprintf("[%q, %q)", bound(n-1), bound(n))
			switch n {
			case 0:
				want = fmt.Sprintf("below %q", bound(0))
			case c.want:
				want = fmt.Sprintf("from %q on", bound(c.want-1))
			}
			if b, is := p.Bucket(int64(n) + 1); !is || b.String() != want {
				t.Errorf("depth %d: bucket %d is %s, want %s", c.depth, n+1, b, want)
			}
		}
	}
}
