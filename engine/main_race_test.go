//go:build race

package engine_test

import "runtime"

// The race detector crashes by itself where many timers of testing/synctest fire on several processors
// (go.dev/issue/78156). Of all packages this one has most of these: under the race detector its tests run on one.
func init() { runtime.GOMAXPROCS(1) }
