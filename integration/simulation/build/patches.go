package build

import "strings"

// patched is the release of Go for which library is written. Who raises it reads what has changed in these files of the
// runtime, and shows by the test of two equal runs that a seed still determines a history.
const patched = "go1.26"

// isPatched reports whether a version of Go, such as go1.26.8, is of that release.
func isPatched(version string) bool {
	return version == patched || strings.HasPrefix(version, patched+".")
}

// change replaces a text of a file.
type change struct{ file, old, new string }

// library lists the changes to Go's standard library, which take out everything that would make two runs of a seed
// differ. The build tag faketime has the runtime jump to the next moment when everything waits, and stand still
// otherwise.
var library = []change{
	// No thread that preempts goroutines after a time slice of real time.
	{"runtime/proc.go", `const haveSysmon = GOARCH != "wasm"`, `const haveSysmon = false`},
	// Randomness comes from the first argument: ids, orders of map keys, choices of select, addresses.
	{"runtime/rand.go", `globalRand.state.Init(*seed)`, `*seed = [32]byte{}; copy(seed[:], gostringnocopy(argv_index(argv, 1))); globalRand.state.Init(*seed)`},
	// All threads draw from the one state: which of them goes on after a wait does not matter.
	{"runtime/rand.go", `mp := getg().m`, `mp := &m0`},
	// The thread that came to rest last would go on after a jump, and which one that is depends on real time.
	{"runtime/proc.go", `mp := mget()
			if mp == nil {
				// There should always be a free M since`, `mp := mgetSpecific(&m0)
			if mp == nil {
				mp = mget()
			}
			if mp == nil {
				// There should always be a free M since`},
	// Before each jump it would look at every goroutine, to find out whether any is left. The world's always are.
	{"runtime/proc.go", `grunning := 0
	forEachG(func(gp *g) {
		if isSystemGoroutine(gp, false) {`, `grunning := 1
	forEachG(func(gp *g) {
		if true {`},
	// Stacks need not grow as often.
	{"runtime/stack.go", `stackMin = 2048`, `stackMin = 8192`},
	// A program that asks for its path takes as much memory as that is long: all that is made later lies elsewhere
	// then, which the order of what is kept by its address depends on.
	{"os/executable_procfs.go", `path, err := Readlink(procfn)`, `path, err := procfn, error(nil)`},
}

// upkeep lists the changes to this module: journals as short as those of simulated histories get snapshots, and are
// trimmed, where the store is small.
var upkeep = []change{
	{"engine/internal/shard/snapshotstore.go", `MinTail = 1 << 20`, `MinTail = 4 << 10`},
	{"engine/internal/shard/snapshotstore.go", `tailShare = 16`, `tailShare = 2048`},
}
