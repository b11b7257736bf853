package view

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"taskledger/events"
)

// raw returns a payload as JSON, nil for none. One that is no JSON text, or no UTF-8, is shown as its codec and its
// bytes.
func raw(p events.Payload) json.RawMessage {
	text, err := p.JSON()
	if err == nil && (text == nil || json.Valid(text) && utf8.Valid(text)) {
		return text
	}
	bytes := base64.StdEncoding.EncodeToString(p[min(len(p), 1):])
	return fmt.Appendf(nil, `{"codec":%d,"base64":%q}`, p.Codec(), bytes)
}

// text returns a payload of bytes as a string if it is valid UTF-8, else as raw shows it.
func text(p events.Payload) any {
	if data, err := p.Bytes(); err == nil && utf8.Valid(data) {
		return string(data)
	}
	return raw(p)
}
