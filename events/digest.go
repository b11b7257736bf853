package events

import (
	"crypto/sha256"

	"taskledger/internal/wire"
)

// sum is the sum of a payload, or of answers, in a digest; it tells none from an empty one.
func sum(content []byte) (s Hash) {
	if content != nil {
		s = sha256.Sum256(content)
	}
	return s
}

// digest is the digest of an event or an origin, as Builder describes it. It appends to the header.
func digest(header *wire.Writer, content Hash) Hash {
	header.B = append(header.B, content[:]...)
	return sha256.Sum256(header.B)
}

// chain is the chain hash of an entry, as Builder describes it.
func chain(prev, head Hash, digests ...[]byte) (next Hash) {
	h := sha256.New()
	h.Write(prev[:])
	h.Write(head[:])
	for _, d := range digests {
		h.Write(d)
	}
	h.Sum(next[:0])
	return next
}
