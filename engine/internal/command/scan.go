package command

import (
	"fmt"

	"taskledger/internal/message"
	"taskledger/internal/wire"
)

// maxMessageBytes bounds what is decoded: an etcd request holds 1.5 MiB, a NATS message 1 MiB.
const maxMessageBytes = 1536 << 10

// Scanned returns a reader of bytes from outside. It refuses bytes whose decoding would cost more than a small
// multiple of them.
func Scanned(data []byte) (*wire.Reader, error) {
	if len(data) > maxMessageBytes {
		return nil, fmt.Errorf("%w: %d bytes exceed the limit of %d", wire.ErrMalformed, len(data), maxMessageBytes)
	}
	if err := wire.Scan(data); err != nil {
		return nil, err
	}
	return wire.NewReader(data), nil
}

// DecodeLenient decodes gossip or an answer from outside, and passes over tails that this release does not know.
func DecodeLenient(data []byte, decode func(r *wire.Reader)) error {
	return wire.Told(data, func(data []byte) error {
		r, err := Scanned(data)
		if err != nil {
			return err
		}
		decode(r)
		return r.Close()
	})
}

// ReadMessage decodes a request from outside, which message.Encode made. It refuses a tail that this release does
// not know.
func ReadMessage[T any](data []byte) (v T, err error) {
	err = message.Decode(data, maxMessageBytes, &v)
	return v, err
}

// ReadLenient decodes gossip or an answer from outside, which message.Encode made. It passes over a tail that this
// release does not know.
func ReadLenient[T any](data []byte) (v T, err error) {
	err = message.Read(data, maxMessageBytes, &v)
	return v, err
}
