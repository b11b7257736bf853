package events

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"unicode/utf8"
)

// Payload is parameters or a result: one byte that names the codec, then the bytes. nil means none, which for a result
// is a void success. It is opaque to everything but the two ends.
type Payload []byte

// Codec is the stored number of how a payload is encoded: never reused.
type Codec uint8

// CodecJSON is JSON text.
const CodecJSON Codec = 1

// Codec returns the codec of the payload; 0 = there is no payload.
func (p Payload) Codec() Codec {
	if len(p) == 0 {
		return 0
	}
	return Codec(p[0])
}

// JSON makes a payload of JSON text, which it copies and does not check. Empty text makes nil.
func JSON(text []byte) Payload {
	if len(text) == 0 {
		return nil
	}
	return append(append(make(Payload, 0, 1+len(text)), byte(CodecJSON)), text...)
}

// JSON returns the JSON text, nil for none. It aliases the payload.
func (p Payload) JSON() ([]byte, error) {
	switch {
	case p == nil:
		return nil, nil
	case len(p) < 2 || p.Codec() != CodecJSON:
		return nil, fmt.Errorf("payload of %d bytes in codec %d, this version knows %d, JSON", len(p), p.Codec(), CodecJSON)
	}
	return p[1:], nil
}

// Readable returns the payload as JSON, nil for none. A payload that is no JSON text, or no UTF-8, is shown as its
// codec and its bytes.
func (p Payload) Readable() json.RawMessage {
	text, err := p.JSON()
	if err == nil && (text == nil || json.Valid(text) && utf8.Valid(text)) {
		return text
	}
	bytes := base64.StdEncoding.EncodeToString(p[min(len(p), 1):])
	return fmt.Appendf(nil, `{"codec":%d,"base64":%q}`, p.Codec(), bytes)
}
