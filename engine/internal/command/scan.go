package command

import (
	"fmt"

	"taskledger/internal/message"
	"taskledger/internal/wire"
)

// maxMessageBytes bounds what is decoded: an etcd request holds 1.5 MiB, a NATS message 1 MiB.
const maxMessageBytes = 1536 << 10

// Scanned returns a reader of what came from outside, once decoding it is known to cost no more than a small multiple of it.
func Scanned(data []byte) (*wire.Reader, error) {
	if len(data) > maxMessageBytes {
		return nil, fmt.Errorf("%w: %d bytes exceed the limit of %d", wire.ErrMalformed, len(data), maxMessageBytes)
	}
	if err := wire.Scan(data); err != nil {
		return nil, err
	}
	return wire.NewReader(data), nil
}

// Told reads what tells something, from outside, and passes over the tails that it does not know.
func Told(data []byte, decode func(r *wire.Reader)) error {
	return wire.Told(data, func(data []byte) error {
		r, err := Scanned(data)
		if err != nil {
			return err
		}
		decode(r)
		return r.Close()
	})
}

// ReadMessage reads what message.Encode made, if it comes from outside and asks for something: a tail that is not known is refused.
func ReadMessage[T any](data []byte) (v T, err error) {
	err = message.Decode(data, maxMessageBytes, &v)
	return v, err
}

// ReadTold is ReadMessage for gossip and answers: it passes over a tail that it does not know.
func ReadTold[T any](data []byte) (v T, err error) {
	err = message.Read(data, maxMessageBytes, &v)
	return v, err
}
