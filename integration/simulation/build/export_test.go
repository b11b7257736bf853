package build

import "time"

// SetComputes sets the time of a processor after which a program that is killed computed for ever. It returns what was
// set before.
func SetComputes(d time.Duration) (before time.Duration) {
	before, computes = computes, d
	return before
}
