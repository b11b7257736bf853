//go:build !race

package repeat

// raced reports that the race detector is on.
const raced = false
