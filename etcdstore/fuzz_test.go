package etcdstore_test

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"

	"taskledger/etcdstore"
	"taskledger/internal/testkit"
	"taskledger/internal/wire"
)

// meta holds the results of DecodeMeta.
type meta struct {
	shards int
	id     string
	key    []byte
}

func decodeMeta(b []byte) (m meta, err error) {
	m.shards, m.id, m.key, err = etcdstore.DecodeMeta(b)
	return m, err
}

func encodeMeta(m meta) []byte { return etcdstore.EncodeMeta(m.shards, m.id, m.key) }

// FuzzFormat_DecodersNeverPanic decodes any bytes as each of the values: what is accepted is written and read again as
// the same.
func FuzzFormat_DecodersNeverPanic(f *testing.F) {
	for _, name := range []string{"meta", "node", "node-limits", "node-reads", "written", "owner", "pointer", "pointer-one", "loss", "mail", "slot"} {
		b := goldenValue(f, name)
		f.Add(b)
		f.Add(b[:len(b)-1])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		again(t, b, decodeMeta, encodeMeta)
		again(t, b, etcdstore.DecodeNode, etcdstore.EncodeNode)
		again(t, b, etcdstore.DecodeWritten, etcdstore.EncodeWritten)
		again(t, b, etcdstore.DecodeOwner, etcdstore.EncodeOwner)
		again(t, b, etcdstore.DecodePointer, etcdstore.EncodePointer)
		again(t, b, etcdstore.DecodeLoss, etcdstore.EncodeLoss)
		again(t, b, etcdstore.DecodeMailboxValue, etcdstore.EncodeMailboxValue)
	})
}

// again decodes b, and what came of it once more.
func again[T any](t *testing.T, b []byte, decode func([]byte) (T, error), encode func(T) []byte) {
	t.Helper()
	v, err := decode(b)
	if err != nil {
		return
	}
	if wire.Scan(b) != nil {
		t.Errorf("malformed bytes are read as %+v", v)
	}
	if second, err := decode(encode(v)); err != nil || !reflect.DeepEqual(second, v) {
		t.Errorf("written and read again: %+v, %v; want %+v", second, err, v)
	}
}

// FuzzKeys reads any key: no two keys of entries, batches or answers are read as the same.
func FuzzKeys(f *testing.F) {
	k := etcdstore.KeysOf("c")
	f.Add(k.Entry(12, 0xabcdef), "")
	f.Add(k.Batch(12, "sender-1", 3), "c/mailbox/12/")
	f.Add(k.Answer("sender-1", 12, 3), "c/answer/sender-1/")
	f.Add("c/journal/12/+00000000000000f", "")
	f.Fuzz(func(t *testing.T, key, prefix string) {
		if n, err := etcdstore.EntryOf([]byte(key)); err == nil {
			if at := strings.LastIndexByte(k.Entry(0, n), '/'); !strings.HasSuffix(strings.ToLower(key), k.Entry(0, n)[at+1:]) {
				t.Errorf("key %q is read as entry %d", key, n)
			}
		}
		if name, lane, err := etcdstore.LaneOf([]byte(key), prefix); err == nil && name == "" {
			t.Errorf("key %q is read as lane %d of nobody", key, lane)
		}
	})
}

func TestFormat_BombsCostLittle(t *testing.T) {
	decoders := map[string]func([]byte) error{
		"meta":    func(b []byte) error { _, err := decodeMeta(b); return err },
		"node":    func(b []byte) error { _, err := etcdstore.DecodeNode(b); return err },
		"owner":   func(b []byte) error { _, err := etcdstore.DecodeOwner(b); return err },
		"pointer": func(b []byte) error { _, err := etcdstore.DecodePointer(b); return err },
		"mail":    func(b []byte) error { _, err := etcdstore.DecodeMailboxValue(b); return err },
	}
	for name, decode := range decoders {
		t.Run(name, func(t *testing.T) { testkit.CheckBombs(t, goldenValue(t, name), decode) })
	}
}

func TestFormat_LargestBatchFits(t *testing.T) {
	batch := bytes.Repeat([]byte{7}, 1<<20)
	if got, err := etcdstore.DecodeMailboxValue(etcdstore.EncodeMailboxValue(batch)); err != nil || !bytes.Equal(got, batch) {
		t.Errorf("a batch of %d bytes: %v", len(batch), err)
	}
	if _, err := etcdstore.DecodeMailboxValue(etcdstore.EncodeMailboxValue(make([]byte, 2<<20))); !errors.Is(err, wire.ErrMalformed) {
		t.Errorf("a batch that no request holds: %v", err)
	}
}
