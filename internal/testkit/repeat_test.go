package testkit_test

import (
	"flag"
	"runtime"
	"slices"
	"strconv"
	"testing"

	"taskledger/internal/testkit"
)

func TestTimes_AreAllInAProofAlone(t *testing.T) {
	cases := []int{0, 1, 2, 3, 4, 5, 6, 7}
	t.Setenv("PROOF", "1")
	if n, some := testkit.Times(2, 9), testkit.Some(cases, 3); n != 9 || !slices.Equal(some, cases) {
		t.Errorf("in a proof: %d times, cases %v", n, some)
	}
	t.Setenv("PROOF", "")
	times, want := 4, []int{0, 2, 4, 6}
	if testing.Short() {
		times, want = 2, []int{0, 4}
	}
	if n, some := testkit.Times(4, 9), testkit.Some(cases, 2); n != times || !slices.Equal(some, want) {
		t.Errorf("else: %d times, cases %v; want %d, %v", n, some, times, want)
	}
}

func TestRand_OfASeedDrawsTheSame(t *testing.T) {
	t.Setenv("RAPID_SEED", "7")
	if a, b := testkit.Rand(t).Uint64(), testkit.Rand(t).Uint64(); a != b {
		t.Errorf("one seed draws %d and %d", a, b)
	}
	t.Setenv("RAPID_SEED", "0")
	if a, b := testkit.Rand(t).Uint64(), testkit.Rand(t).Uint64(); a == b {
		t.Errorf("two new seeds draw %d", a)
	}
}

func TestAtOnce_LeavesWhatTheCommandLineSays(t *testing.T) {
	parallel := flag.Lookup("test.parallel").Value
	before := parallel.String()
	t.Cleanup(func() { _ = parallel.Set(before) })
	testkit.AtOnce(3)
	if n, err := strconv.Atoi(parallel.String()); before == strconv.Itoa(runtime.GOMAXPROCS(0)) && (err != nil || n < 2*runtime.GOMAXPROCS(0)) {
		t.Errorf("%s at once, %v; want some for each processor", parallel, err)
	}
	if err := parallel.Set("5"); err != nil {
		t.Fatal(err)
	}
	if testkit.AtOnce(3); runtime.GOMAXPROCS(0) != 5 && parallel.String() != "5" {
		t.Errorf("%s at once, want 5", parallel)
	}
}
