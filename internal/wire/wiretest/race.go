//go:build race

package wiretest

const slowness = 10 // of the race detector
