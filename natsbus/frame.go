package natsbus

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"sync"
)

const (
	frameVersion = 1
	frameHeader  = 1 + sha256.Size
	// maxKeptBytes bounds the buffer that a pooled sealer keeps, so that one large message does not stay for ever.
	maxKeptBytes = 64 << 10
)

// framer seals and opens internal messages under the cluster key. Its methods may be called concurrently.
type framer struct{ sealers sync.Pool }

// sealer is the state that sealing or opening one message needs. Resetting a keyed hash costs a fraction of keying it.
type sealer struct {
	mac hash.Hash
	sum [sha256.Size]byte
	buf []byte
}

func newFramer(key []byte) *framer {
	key = append([]byte(nil), key...)
	return &framer{sealers: sync.Pool{New: func() any {
		return &sealer{mac: hmac.New(sha256.New, key)}
	}}}
}

// seal returns a sealer whose buf is the frame around body, until it is released.
func (f *framer) seal(subject, reply string, body []byte) *sealer {
	s := f.sealers.Get().(*sealer)
	sum := s.authenticate(subject, reply, body)
	s.buf = append(s.buf[:0], frameVersion)
	s.buf = append(s.buf, sum...)
	s.buf = append(s.buf, body...)
	return s
}

// open returns the body inside frame, and whether a member of the cluster sealed it for this subject and reply.
func (f *framer) open(subject, reply string, frame []byte) ([]byte, bool) {
	if len(frame) < frameHeader || frame[0] != frameVersion {
		return nil, false
	}
	s := f.sealers.Get().(*sealer)
	defer f.release(s)
	body := frame[frameHeader:]
	return body, hmac.Equal(frame[1:frameHeader], s.authenticate(subject, reply, body))
}

func (f *framer) release(s *sealer) {
	if cap(s.buf) > maxKeptBytes {
		s.buf = nil
	}
	f.sealers.Put(s)
}

// authenticate returns the MAC, valid until the next call.
func (s *sealer) authenticate(subject, reply string, body []byte) []byte {
	s.buf = append(s.buf[:0], frameVersion)
	s.buf = binary.AppendUvarint(s.buf, uint64(len(subject)))
	s.buf = append(s.buf, subject...)
	s.buf = binary.AppendUvarint(s.buf, uint64(len(reply)))
	s.buf = append(s.buf, reply...)
	s.mac.Reset()
	s.mac.Write(s.buf)
	s.mac.Write(body)
	return s.mac.Sum(s.sum[:0])
}
