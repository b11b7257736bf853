package events

import (
	"fmt"
	"unicode/utf8"

	"taskledger/internal/wire"
)

// Caller identifies who asked a service for a command, as the service that passes the command on knows it. The zero
// value is none: the client or node that sent the command asked itself.
type Caller struct {
	Principal   string // who asked; "" = the principal of the client or node that sent the command
	RequestID   string // names the request in the caller's logs; it is no request key
	Traceparent string // of W3C Trace Context
}

// Validate returns an error that names the field which is too long, or no UTF-8.
func (a *Caller) Validate() error {
	for _, f := range [...]struct{ name, text string }{{"principal", a.Principal}, {"request id", a.RequestID}, {"traceparent", a.Traceparent}} {
		if len(f.text) > MaxNameBytes || !utf8.ValidString(f.text) {
			return fmt.Errorf("%s of %d bytes, want UTF-8 of %d bytes at most", f.name, len(f.text), MaxNameBytes)
		}
	}
	return nil
}

// Bytes is an upper bound of what the caller takes encoded.
func (a *Caller) Bytes() int { return len(a.Principal) + len(a.RequestID) + len(a.Traceparent) + 16 }

// Encode writes the array [principal, request id, traceparent].
func (a *Caller) Encode(w *wire.Writer) {
	w.Array(3)
	w.Text(a.Principal)
	w.Text(a.RequestID)
	w.Text(a.Traceparent)
}

// Decode reads what Encode wrote; whether an event can hold it is for Validate to say.
func (a *Caller) Decode(r *wire.Reader) {
	r.ArrayOf(3)
	a.Principal, a.RequestID, a.Traceparent = r.Text(), r.Text(), r.Text()
}
