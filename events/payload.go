package events

import "fmt"

// Payload is parameters or a result: one byte that names the codec, then the bytes. nil means none, which for a result
// is a void success. It is opaque to everything but the two ends.
type Payload []byte

const codecJSON = 1 // stored; never reuse a number

// JSON makes a payload of JSON text, which it copies and does not check. Empty text makes nil.
func JSON(text []byte) Payload {
	if len(text) == 0 {
		return nil
	}
	return append(append(make(Payload, 0, 1+len(text)), codecJSON), text...)
}

// JSON returns the JSON text, nil for none. It aliases the payload.
func (p Payload) JSON() ([]byte, error) {
	switch {
	case p == nil:
		return nil, nil
	case len(p) < 2 || p[0] != codecJSON:
		return nil, fmt.Errorf("payload of %d bytes in a codec this version does not know", len(p))
	}
	return p[1:], nil
}
