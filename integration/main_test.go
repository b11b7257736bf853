package integration_test

import (
	"flag"
	"os"
	"runtime"
	"strconv"
	"testing"

	"go.uber.org/goleak"
)

// parallelPerCPU is how many tests run at once for each processor: they wait more than they work.
const parallelPerCPU = 4

func TestMain(m *testing.M) {
	if isChild, code := runAsChild(); isChild {
		os.Exit(code)
	}
	flag.Parse()
	if parallel := flag.Lookup("test.parallel").Value; parallel.String() == strconv.Itoa(runtime.GOMAXPROCS(0)) { // the default
		if err := parallel.Set(strconv.Itoa(parallelPerCPU * runtime.GOMAXPROCS(0))); err != nil {
			panic(err)
		}
	}
	goleak.VerifyTestMain(m)
}
