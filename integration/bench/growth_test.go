package bench_test

import (
	"math"
	"testing"
)

func TestGrowth_SlopesAreThoseOfLines(t *testing.T) {
	for name, in := range map[string]func(*sample) *float64{
		"store":      func(s *sample) *float64 { return &s.store },
		"store-file": func(s *sample) *float64 { return &s.file },
		"heap":       func(s *sample) *float64 { return &s.heap },
		"rss":        func(s *sample) *float64 { return &s.rss },
		"open-files": func(s *sample) *float64 { return &s.opened },
	} {
		samples := make([]sample, 10) // each a million tasks after the one before
		for i := range samples {
			samples[i] = sample{tasks: float64(i * million), store: 5, file: 5, heap: 5, rss: 5, opened: 5}
			*in(&samples[i]) = 88 + 2*float64(i) // of the last eight, 92 to 106, the mean is 99
		}
		*in(&samples[0]) = 1e9        // the first fifth does not count
		f := newFigures(&told{TB: t}) // bounds are not what is looked at
		growth(f, samples)
		for _, what := range []string{"store", "store-file", "heap", "rss", "open-files"} {
			want := 0.0
			if what == name {
				want = 2.0 / 99 * 100
			}
			if got := f.by[what+"-growth-pct/Mtask"]; math.Abs(got-want) > 1e-9 {
				t.Errorf("%s grows by %f %% beside %s, want %f", what, got, name, want)
			}
		}
	}
}

// Too few samples break every bound of theirs.
func TestGrowth_OfTooFewSamplesIsNoNumber(t *testing.T) {
	t.Setenv("PROOF", "1")
	proof := &told{TB: t}
	growth(newFigures(proof), make([]sample, 1))
	if len(proof.errors) != 2 {
		t.Errorf("one sample breaks %q, want both bounds", proof.errors)
	}
}
