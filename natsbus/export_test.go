package natsbus

// Seal frames body for tests of the frame's format.
func Seal(key []byte, subject, reply string, body []byte) []byte {
	return append([]byte(nil), newFramer(key).seal(subject, reply, body).buf...)
}

// Opener returns the check of incoming frames under key.
func Opener(key []byte) func(subject, reply string, frame []byte) ([]byte, bool) {
	return newFramer(key).open
}

// Sealer returns the framing of outgoing bodies under key, without the copy that Seal makes.
func Sealer(key []byte) func(subject, reply string, body []byte) int {
	f := newFramer(key)
	return func(subject, reply string, body []byte) int {
		s := f.seal(subject, reply, body)
		defer f.release(s)
		return len(s.buf)
	}
}

// PendingMessages is the bound of a subscription's queue.
const PendingMessages = pendingMessages
