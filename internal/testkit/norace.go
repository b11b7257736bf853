//go:build !race

package testkit

// raced reports that the race detector is on.
const raced = false
