package etcdstore

import (
	"taskledger/internal/wire"
	"taskledger/store"
)

// Keys gives tests the layout of a cluster's keys.
type Keys struct{ k keys }

func KeysOf(cluster string) Keys { return Keys{keys(cluster + "/")} }

func (k Keys) Meta() string                          { return k.k.meta() }
func (k Keys) Node(id string) string                 { return k.k.node(id) }
func (k Keys) Written() string                       { return k.k.written() }
func (k Keys) Owner(shard int) string                { return k.k.owner(shard) }
func (k Keys) Entry(shard int, number uint64) string { return k.k.entry(shard, number) }
func (k Keys) Pointer(shard int) string              { return k.k.pointer(shard) }
func (k Keys) Parts(shard int) string                { return k.k.parts(shard) }
func (k Keys) Part(shard int, s store.SnapshotInfo, part int) string {
	return k.k.part(shard, s.Entry, s.Epoch, part)
}
func (k Keys) Loss(shard int) string                        { return k.k.loss(shard) }
func (k Keys) Batch(shard int, from string, l uint8) string { return k.k.batch(shard, from, l) }
func (k Keys) Answer(to string, shard int, l uint8) string  { return k.k.answer(to, shard, l) }

// EntryOf and LaneOf read keys back.

func EntryOf(key []byte) (uint64, error) { return number(key) }
func LaneOf(key []byte, prefix string) (name string, lane uint8, err error) {
	return laned(key, prefix)
}

// The codecs of the stored values.

func EncodeMeta(shards int, id string, key []byte) []byte {
	return encodeMeta(meta{shards: shards, id: id, key: key})
}

// EncodeCopiedMeta is EncodeMeta of a cluster that was copied.
func EncodeCopiedMeta(shards int, id string, key []byte, base int64) []byte {
	b := encodeMeta(meta{shards: shards, id: id, key: key, base: 1})
	w := &wire.Writer{B: b[:len(b)-1]}
	w.Int(base)
	return w.B
}

// EncodeCopying is the value of the key that marks a copy.
func EncodeCopying(of string, shards int, id string, key []byte) []byte {
	return encodeCopying(of, meta{shards: shards, id: id, key: key})
}

func DecodeCopying(b []byte) (of, id string, err error) {
	of, m, err := decodeCopying(b)
	return of, m.id, err
}

// Carry is the value of an entry that was copied, and Carried reads it.

func Carry(revision int64, entry []byte) []byte           { return carry(revision, entry) }
func Carried(value []byte) (revision int64, entry []byte) { return carried(value) }

func DecodeMeta(b []byte) (shards int, id string, key []byte, err error) {
	m, err := decodeMeta(b)
	return m.shards, m.id, m.key, err
}
func EncodeNode(n store.NodeInfo) []byte          { return encodeNode(n) }
func DecodeNode(b []byte) (store.NodeInfo, error) { return decodeNode(b) }
func EncodeWritten(v store.Reads) []byte          { return encodeWritten(v) }
func DecodeWritten(b []byte) (store.Reads, error) { return decodeWritten(b) }
func EncodeOwner(session string) []byte           { return encodeOwner(session) }
func DecodeOwner(b []byte) (string, error)        { return decodeOwner(b) }
func EncodePointer(k []store.SnapshotInfo) []byte { return encodePointer(k) }
func DecodePointer(b []byte) ([]store.SnapshotInfo, error) {
	return decodePointer(b)
}
func EncodeLoss(l store.Loss) []byte              { return encodeLoss(l) }
func DecodeLoss(b []byte) (store.Loss, error)     { return decodeLoss(b) }
func EncodeMailboxValue(data []byte) []byte       { return encodeMailboxValue(data) }
func DecodeMailboxValue(b []byte) ([]byte, error) { return decodeMailboxValue(b) }

// CheckVersion is the floor of server versions.
func CheckVersion(version string) error { return checkVersion(version) }
