//go:build race

package wiretest

const slowness = 30 // of the race detector
