package etcdstore

import (
	"fmt"

	"taskledger/engine"
	"taskledger/internal/wire"
)

// version is the first element of every value that this package encodes.
const version = 1

// meta is what was fixed when the cluster was created.
type meta struct {
	shards int
	id     string
	key    []byte
}

func record(elements int) *wire.Writer {
	w := new(wire.Writer)
	w.Array(1 + elements)
	w.Uint(version)
	return w
}

// fields opens a value of at least the given number of elements after its version. More are left unread: a later
// release may append some.
func fields(b []byte, elements int) (*wire.Reader, error) {
	if err := wire.Scan(b); err != nil {
		return nil, err
	}
	r := wire.NewReader(b)
	n, v := r.Array(), r.Uint()
	switch {
	case r.Err() != nil:
		return nil, r.Err()
	case v != version:
		return nil, fmt.Errorf("format version %d, this release knows %d", v, version)
	case n < 1+elements:
		return nil, fmt.Errorf("%w: %d elements, want %d", wire.ErrMalformed, n, 1+elements)
	}
	return r, nil
}

func encodeMeta(m meta) []byte {
	w := record(3)
	w.Uint(uint64(m.shards))
	w.Text(m.id)
	w.Bytes(m.key)
	return w.B
}

func decodeMeta(b []byte) (m meta, err error) {
	r, err := fields(b, 3)
	if err != nil {
		return m, err
	}
	m = meta{shards: int(r.Uint()), id: r.Text(), key: r.Bytes()}
	if r.Err() == nil && (!validShards(m.shards) || len(m.key) != keyBytes) {
		return m, fmt.Errorf("%w: %d shards, key of %d bytes", wire.ErrMalformed, m.shards, len(m.key))
	}
	return m, r.Err()
}

func encodeNode(n engine.NodeInfo) []byte {
	w := record(10)
	w.Text(n.Name)
	w.Text(n.Version)
	w.Text(n.Address)
	w.Array(len(n.Behaviors))
	for _, b := range n.Behaviors {
		w.Text(b)
	}
	w.Text(n.Types)
	w.Int(int64(n.Slots))
	w.Bool(n.Owner)
	w.Bool(n.Draining)
	w.Int(n.Joined)
	w.Bytes(n.Load)
	return w.B
}

func decodeNode(b []byte) (n engine.NodeInfo, err error) {
	r, err := fields(b, 10)
	if err != nil {
		return n, err
	}
	n.Name, n.Version, n.Address = r.Text(), r.Text(), r.Text()
	for range r.Array() {
		n.Behaviors = append(n.Behaviors, r.Text())
	}
	n.Types, n.Slots = r.Text(), int(r.Int())
	n.Owner, n.Draining = r.Bool(), r.Bool()
	n.Joined, n.Load = r.Int(), r.Bytes()
	return n, r.Err()
}

func encodeOwner(session string) []byte {
	w := record(1)
	w.Text(session)
	return w.B
}

func decodeOwner(b []byte) (session string, err error) {
	r, err := fields(b, 1)
	if err != nil {
		return "", err
	}
	session = r.Text()
	return session, r.Err()
}

// decodePointer returns the number of the entry that the newest snapshot covers.
func decodePointer(b []byte) (entry uint64, err error) {
	r, err := fields(b, 1)
	if err != nil {
		return 0, err
	}
	if kept := r.Array(); r.Err() == nil && kept == 0 {
		return 0, fmt.Errorf("%w: snapshot pointer to nothing", wire.ErrMalformed)
	}
	r.Array()
	entry = r.Uint()
	return entry, r.Err()
}

// encodeMail makes the value of a letter or an answer.
func encodeMail(data []byte) []byte {
	w := record(1)
	w.Bytes(data)
	return w.B
}

func decodeMail(b []byte) (data []byte, err error) {
	r, err := fields(b, 1)
	if err != nil {
		return nil, err
	}
	data = r.Bytes()
	return data, r.Err()
}
