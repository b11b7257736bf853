package etcdstore

import (
	"context"
	"fmt"

	"taskledger/store"
)

// encodeCopying makes the value of the key that marks a cluster which is being copied.
func encodeCopying(of string, m meta) []byte {
	w := record(4)
	w.Text(of)
	w.Uint(uint64(m.shards))
	w.Text(m.id)
	w.Bytes(m.key)
	return w.B
}

func decodeCopying(b []byte) (of string, m meta, err error) {
	r, err := fields(b, 4)
	if err != nil {
		return "", m, err
	}
	of = r.Text()
	m = meta{shards: int(r.Uint()), id: r.Text(), key: r.Bytes()}
	return of, m, r.Err()
}

// checkFinished wraps store.ErrUnfinished where a cluster was being copied.
func (s *Store) checkFinished(ctx context.Context) error {
	resp, err := s.get(ctx, s.keys.copying())
	if err != nil {
		return fmt.Errorf("read %s: %w", s.keys.copying(), err)
	}
	if len(resp.Kvs) == 0 {
		return nil
	}
	of, m, err := decodeCopying(resp.Kvs[0].Value)
	if err != nil {
		return fmt.Errorf("read %s: %w", s.keys.copying(), err)
	}
	return unfinished(of, m)
}

func unfinished(of string, m meta) error {
	return fmt.Errorf("copy of cluster %s from %s %w", m.id, of, store.ErrUnfinished)
}
