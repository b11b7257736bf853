package collections

import (
	"crypto/sha256"

	"taskledger/events"
)

// File holds what a file says.
type File struct {
	Collections []Collection // ordered by id, each of which is there once
}

// Hash returns the hash of what the file means: it does not depend on comments, on the order of keys, sources and
// collections, on the level at which a key stands, or on whether a default is written down.
func (f *File) Hash() events.Hash {
	sum := sha256.New()
	for i := range f.Collections {
		hash := f.Collections[i].Hash()
		sum.Write(hash[:])
	}
	return events.Hash(sum.Sum(nil))
}
