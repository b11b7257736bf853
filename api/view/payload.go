package view

import (
	"unicode/utf8"

	"taskledger/events"
)

// text returns a payload of bytes as a string if it is valid UTF-8, else as Payload.Readable shows it.
func text(p events.Payload) any {
	if data, err := p.Bytes(); err == nil && utf8.Valid(data) {
		return string(data)
	}
	return p.Readable()
}
