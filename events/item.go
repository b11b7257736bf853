package events

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"taskledger/internal/wire"
)

// The events of an item of a store are of the TaskID that StoreItem returns. Their Seq and Prev count and link what
// happened to the item from its addition to its removal, through all of its ids.
const (
	// StorePrefix begins the affinity of a store, which no task has.
	StorePrefix = "store:"
	// MaxStoreBytes bounds the name of a store.
	MaxStoreBytes = 64
	// MaxGroupBytes bounds the name of a group of items, which is data.
	MaxGroupBytes = 256
	// MaxItemNumber bounds ids and owners of items: a JSON number holds them exactly.
	MaxItemNumber = 1 << 53
	// MaxItemTime is the last millisecond of the year 9999.
	MaxItemTime Millis = 253_402_300_799_999
)

// CodecBytes is bytes as they are.
const CodecBytes Codec = 2

// Bytes makes a payload of bytes, which it copies. It is never nil.
func Bytes(data []byte) Payload {
	return append(append(make(Payload, 0, 1+len(data)), byte(CodecBytes)), data...)
}

// Bytes returns the bytes. They alias the payload.
func (p Payload) Bytes() ([]byte, error) {
	if p.Codec() != CodecBytes {
		return nil, fmt.Errorf("payload of %d bytes in codec %d, want %d, bytes", len(p), p.Codec(), CodecBytes)
	}
	return p[1:], nil
}

// StoreItem returns the id that the events of an item carry as their task: "store:NAME/LINEAGE", of the name of its
// store and the id that it was added with.
func StoreItem(store string, lineage uint64) TaskID {
	return TaskID(StorePrefix + store + "/" + strconv.FormatUint(lineage, 10))
}

// ItemOf is the reverse of StoreItem.
func ItemOf(id TaskID) (store string, lineage uint64, err error) {
	name, number, _ := strings.Cut(string(id), "/")
	store, is := strings.CutPrefix(name, StorePrefix)
	lineage, bad := strconv.ParseUint(number, 10, 64)
	if !is || bad != nil || lineage == 0 || lineage > MaxItemNumber || StoreItem(store, lineage) != id {
		return "", 0, fmt.Errorf("%q is no item of a store, want %sNAME/NUMBER", id, StorePrefix)
	}
	return store, lineage, ValidateStore(store)
}

// ValidateStore returns an error when name is not 1 to 64 bytes of [A-Za-z0-9._:-].
func ValidateStore(name string) error {
	if name == "" || len(name) > MaxStoreBytes {
		return fmt.Errorf("store %q: %d bytes, want 1 to %d", Head(name, MaxStoreBytes), len(name), MaxStoreBytes)
	}
	for i := range len(name) {
		if !inID[name[i]] {
			return fmt.Errorf("store %q: byte %d is %s, want [A-Za-z0-9._:-]", name, i, shown(name[i:]))
		}
	}
	return nil
}

// ItemAdded puts an item into a store.
type ItemAdded struct {
	ID    uint64
	Group string
	At    Millis // available from then on
	Owner uint64 // who asked for it
	Data  Payload
}

// ItemReplaced gives an item another id and what it says; it stays in its group.
type ItemReplaced struct {
	From, To uint64
	At       Millis
	Owner    uint64
	Data     Payload // nil = as before
}

// ItemRemoved takes an item out of its store.
type ItemRemoved struct {
	ID    uint64
	Owner uint64 // who asked for it
}

// StoreForgotten forgets a store that has had no items for long, and whose requests are forgotten. The ids of stores
// that come, by the same name or another, begin behind its last one.
type StoreForgotten struct {
	Store string
	Last  uint64 // its last id
}

func (*ItemAdded) Kind() Kind      { return KindItemAdded }
func (*ItemReplaced) Kind() Kind   { return KindItemReplaced }
func (*ItemRemoved) Kind() Kind    { return KindItemRemoved }
func (*StoreForgotten) Kind() Kind { return KindStoreForgotten }

func (b *ItemAdded) payload() Payload    { return b.Data }
func (b *ItemReplaced) payload() Payload { return b.Data }
func (*ItemRemoved) payload() Payload    { return nil }
func (*StoreForgotten) payload() Payload { return nil }

func (b *ItemAdded) encode(w *wire.Writer) {
	w.Array(4)
	w.Uint(b.ID)
	w.Text(b.Group)
	w.Int(int64(b.At))
	w.Uint(b.Owner)
}

func (b *ItemReplaced) encode(w *wire.Writer) {
	w.Array(4)
	w.Uint(b.From)
	w.Uint(b.To)
	w.Int(int64(b.At))
	w.Uint(b.Owner)
}

func (b *ItemRemoved) encode(w *wire.Writer) { w.Array(2); w.Uint(b.ID); w.Uint(b.Owner) }

func (b *StoreForgotten) encode(w *wire.Writer) { w.Array(2); w.Text(b.Store); w.Uint(b.Last) }

func (b *ItemAdded) decode(r *wire.Reader, p Payload) {
	r.ArrayOf(4)
	b.ID, b.Group, b.At, b.Owner, b.Data = r.Uint(), r.Text(), Millis(r.Int()), r.Uint(), p
}

func (b *ItemReplaced) decode(r *wire.Reader, p Payload) {
	r.ArrayOf(4)
	b.From, b.To, b.At, b.Owner, b.Data = r.Uint(), r.Uint(), Millis(r.Int()), r.Uint(), p
}

func (b *ItemRemoved) decode(r *wire.Reader, _ Payload) {
	r.ArrayOf(2)
	b.ID, b.Owner = r.Uint(), r.Uint()
}

func (b *StoreForgotten) decode(r *wire.Reader, _ Payload) {
	r.ArrayOf(2)
	b.Store, b.Last = r.Text(), r.Uint()
}

func (b *StoreForgotten) check() error {
	if err := ValidateStore(b.Store); err != nil {
		return err
	}
	return checkHeld(0, Payload{byte(CodecBytes)}, b.Last)
}

// checkItem returns an error for an event of an item that neither Seal nor Decode accepts.
func checkItem(id TaskID, body Body) error {
	if _, _, err := ItemOf(id); err != nil {
		return err
	}
	switch b := body.(type) {
	case *ItemAdded:
		if n := len(b.Group); n == 0 || n > MaxGroupBytes {
			return fmt.Errorf("group of %d bytes, want 1 to %d", n, MaxGroupBytes)
		}
		if !utf8.ValidString(b.Group) {
			return fmt.Errorf("group %q: want UTF-8", b.Group)
		}
		return checkHeld(b.At, b.Data, b.ID, b.Owner)
	case *ItemReplaced:
		if b.Data == nil {
			return checkHeld(b.At, Payload{byte(CodecBytes)}, b.From, b.To, b.Owner)
		}
		return checkHeld(b.At, b.Data, b.From, b.To, b.Owner)
	case *ItemRemoved:
		return checkHeld(0, Payload{byte(CodecBytes)}, b.ID, b.Owner)
	}
	return nil
}

func checkHeld(at Millis, data Payload, numbers ...uint64) error {
	for _, n := range numbers {
		if n == 0 || n > MaxItemNumber {
			return fmt.Errorf("number %d, want 1 to %d", n, uint64(MaxItemNumber))
		}
	}
	if at < 0 || at > MaxItemTime {
		return fmt.Errorf("time %d, want 0 to %d", at, MaxItemTime)
	}
	if data.Codec() != CodecBytes {
		return fmt.Errorf("data in codec %d, want %d", data.Codec(), CodecBytes)
	}
	return nil
}

// ItemRequestID identifies a keyed request in events and the fold: "CLIENT/KEY", a "#", and the first 10 bytes of a
// SHA-256 sum over the rest of the request. RequestKey returns the part before the "#".
func ItemRequestID(client uint64, key string, asked []byte) string {
	return idOf(strconv.FormatUint(client, 10)+"/"+key, &wire.Writer{B: asked})
}

// MaxItemKeyBytes bounds the key of a request to a store: the id of the request has MaxNameBytes at most.
const MaxItemKeyBytes = MaxKeyBytes - len("/") - 17 // digits of the largest client
