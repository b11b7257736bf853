package events

import (
	"fmt"

	"taskledger/internal/wire"
)

// scan refuses what decoding would cost more than a small multiple of, and what is larger than any entry.
func scan(data []byte) error {
	if len(data) > MaxEntryBytes {
		return fmt.Errorf("%d bytes exceed the limit of %d", len(data), MaxEntryBytes)
	}
	return wire.Scan(data)
}

// upTo reads a number that must not exceed limit.
func upTo(r *wire.Reader, limit uint64) uint64 {
	v := r.Uint()
	if v > limit {
		r.Fail("number %d exceeds %d", v, limit)
	}
	return v
}
