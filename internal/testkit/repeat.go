package testkit

import (
	"flag"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"testing"
)

// Whole reports whether the test is part of a proof, PROOF=1 in the environment: then it does all that it can, on a
// machine with nothing else to do, where it may bound a time.
func Whole() bool { return os.Getenv("PROOF") == "1" }

// Times returns how often a test repeats something: all in a proof, else few, and half of those with -short.
func Times(few, all int) int {
	switch {
	case Whole():
		return all
	case testing.Short():
		return max(1, few/2)
	}
	return few
}

// Some returns all of the cases in a proof, else every nth of them.
func Some[T any](cases []T, nth int) (some []T) {
	if Whole() {
		return cases
	}
	if testing.Short() {
		nth *= 2
	}
	for i := 0; i < len(cases); i += nth {
		some = append(some, cases[i])
	}
	return some
}

// Rand returns a source of randomness for a test, seeded by RAPID_SEED in the environment, which package rapid reads
// too, else by a seed of its own. The log of the test names the seed.
func Rand(t *testing.T) *rand.Rand {
	t.Helper()
	seed, err := strconv.ParseUint(os.Getenv("RAPID_SEED"), 0, 64)
	if err != nil || seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("RAPID_SEED=%d draws the same", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// busy has two places for each processor; with the race detector, one for two of them.
var busy = func() chan struct{} {
	places := 2 * runtime.GOMAXPROCS(0)
	if raced {
		places = max(1, places/4)
	}
	return make(chan struct{}, places)
}()

// Busy waits until few other tests of the package keep the processors busy, as this one will until it ends. Beside
// too many of them no server would answer in time, and none would end sooner. A test calls it after t.Parallel, and
// no test within it does.
func Busy(t testing.TB) {
	t.Helper()
	busy <- struct{}{}
	t.Cleanup(func() { <-busy })
}

// AtOnce lets so many tests of the package run side by side for each processor, unless the command line says how
// many: for tests that wait more than they work. With the race detector, which makes all work five times as long, it
// is half of them. TestMain calls it.
func AtOnce(perProcessor int) {
	flag.Parse()
	parallel := flag.Lookup("test.parallel").Value
	if parallel.String() != strconv.Itoa(runtime.GOMAXPROCS(0)) { // that is the default
		return
	}
	if raced {
		perProcessor = (perProcessor + 1) / 2
	}
	if err := parallel.Set(strconv.Itoa(perProcessor * runtime.GOMAXPROCS(0))); err != nil {
		panic(err) // a number is a number
	}
}
