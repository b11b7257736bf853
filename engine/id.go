package engine

import (
	"encoding/binary"
	"math/rand/v2"

	"taskledger/events"
)

// randomID returns 80 random bits as 16 characters: the id of a sender, or of a question.
func randomID() string {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:], rand.Uint64())
	binary.BigEndian.PutUint64(b[8:], rand.Uint64())
	return events.IDEncoding.EncodeToString(b[:10])
}
