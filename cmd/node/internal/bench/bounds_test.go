package bench

import (
	"math"
	"strings"
	"testing"
	"time"
)

// What checks rely on fails when it should.
func TestScaleResult_WithinTellsTheBoundThatIsBroken(t *testing.T) {
	r := ScaleResult{Snapshots: 1, TurnP99Ms: 2, SnapshotTurnP99Ms: 9, TakeOverS: 1, OneShardS: 2}
	for says, b := range map[string]ScaleBounds{
		"":           {Turn: 10 * time.Millisecond, TakeOver: 3 * time.Second},
		"9.00 ms":    {Turn: 8 * time.Millisecond},
		"lasts 2.00": {TakeOver: time.Second},
	} {
		if err := r.Within(b); (err == nil) != (says == "") || err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("%+v: %v, want %q", b, err, says)
		}
	}
	r.Snapshots = 0
	if err := r.Within(ScaleBounds{Turn: time.Hour}); err == nil {
		t.Error("turns beside no snapshot are within a bound")
	}
}

func TestListsResult_WithinTellsTheBoundThatIsBroken(t *testing.T) {
	r := ListsResult{LoadRatio: 0.7, ListTurnMs: 3, Pages: []FilterPages{{Filter: "all", Pages: 9, P99Ms: 20}, {Filter: "slow", Pages: 9, P99Ms: 40}}}
	for says, b := range map[string]ListsBounds{
		"":         {Page: 50 * time.Millisecond, Turn: 10 * time.Millisecond, Load: 0.7},
		"has 0.70": {Load: 0.8},
		"slow":     {Page: 30 * time.Millisecond},
		"3.00 ms":  {Turn: 2 * time.Millisecond},
	} {
		if err := r.Within(b); (err == nil) != (says == "") || err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("%+v: %v, want %q", b, err, says)
		}
	}
	r.Pages[0].Pages, r.ListTurnMs = 0, 0
	if r.Within(ListsBounds{Page: time.Hour}) == nil || r.Within(ListsBounds{Turn: time.Hour}) == nil {
		t.Error("nothing was measured, and is within a bound")
	}
}

// line is so many samples, each a million tasks after the one before, of which one quantity grows by so much.
func line(n int, of func(*SoakPoint) *float64, from, growth float64) []SoakPoint {
	all := make([]SoakPoint, n)
	for i := range all {
		all[i] = SoakPoint{Tasks: i * million, Store: 5, File: 5, Heap: 5, RSS: 5, Files: 5}
		*of(&all[i]) = from + growth*float64(i)
	}
	return all
}

func TestSoakResult_SlopesAreThoseOfLines(t *testing.T) {
	for name, of := range map[string]struct {
		in  func(*SoakPoint) *float64
		out func(SoakResult) float64
	}{
		"store": {func(p *SoakPoint) *float64 { return &p.Store }, func(r SoakResult) float64 { return r.StoreSlope }},
		"file":  {func(p *SoakPoint) *float64 { return &p.File }, func(r SoakResult) float64 { return r.FileSlope }},
		"heap":  {func(p *SoakPoint) *float64 { return &p.Heap }, func(r SoakResult) float64 { return r.HeapSlope }},
		"rss":   {func(p *SoakPoint) *float64 { return &p.RSS }, func(r SoakResult) float64 { return r.RSSSlope }},
		"files": {func(p *SoakPoint) *float64 { return &p.Files }, func(r SoakResult) float64 { return r.FilesSlope }},
	} {
		points := line(10, of.in, 88, 2) // of the last eight, 92 to 106, the mean is 99
		*of.in(&points[0]) = 1e9         // the first fifth does not count
		r := summarize(points)
		if got, want := of.out(r), 2.0/99*100; math.Abs(got-want) > 1e-9 || r.Worst() != got || r.Samples != 8 {
			t.Errorf("%s grows by %f %% in %d samples, the worst is %f; want %f in 8", name, got, r.Samples, r.Worst(), want)
		}
		if err := r.Within(SoakBounds{SlopePct: 2}); err == nil {
			t.Errorf("%s is within 2 %%", name)
		}
		if err := r.Within(SoakBounds{SlopePct: 3}); err != nil {
			t.Error(err)
		}
	}
}

func TestSoakResult_WithinTellsTheBoundThatIsBroken(t *testing.T) {
	r := SoakResult{Samples: 9, Kept: 0.5, HeapBytes: 100 << 20, OpenFiles: 20}
	for says, b := range map[string]SoakBounds{
		"":                  {Kept: 0.6, HeapMiB: 101, OpenFiles: 21, SlopePct: 1},
		"0.50":              {Kept: 0.4},
		"100 MiB":           {HeapMiB: 99},
		"20 files are open": {OpenFiles: 19},
	} {
		if err := r.Within(b); (err == nil) != (says == "") || err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("%+v: %v, want %q", b, err, says)
		}
	}
	if err := (SoakResult{}).Within(SoakBounds{Kept: 1}); err == nil {
		t.Error("nothing was measured, and is within a bound")
	}
}
