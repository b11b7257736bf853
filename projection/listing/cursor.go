package listing

import (
	"encoding/base64"
	"errors"
	"fmt"
	"hash/crc32"

	"taskledger/events"
	"taskledger/internal/wire"
	"taskledger/task"
)

// cursorVersion is the first value of a cursor.
const cursorVersion = 1

// maxCursor bounds the text of a cursor: with a key for each of 256 shards it is shorter.
const maxCursor = 16 << 10

// Cursor is where a list goes on: in each shard with the tasks whose keys are smaller than one, which is the same in
// most of them.
type Cursor struct {
	Cluster string // its id
	From    []Key  // by shard; the zero Key = there is nothing more
}

// Begin returns the cursor of the first page, in a cluster of so many shards.
func Begin(f task.Filter, shards int) Cursor {
	c := Cursor{From: make([]Key, shards)}
	for shard := range c.From {
		if f.Affinity == "" || events.TaskID(f.Affinity).Shard(shards) == shard {
			c.From[shard] = Newest
		}
	}
	return c
}

// Behind reports whether the list is less far in a shard than in another one: it was missing.
func (c Cursor) Behind(shard int) bool {
	for _, k := range c.From {
		if k != (Key{}) && k.Compare(c.From[shard]) < 0 {
			return true
		}
	}
	return false
}

// Text returns an opaque form of the cursor, which only a list of the same filter takes. It is base64 of the array
//
//	[1, cluster, filter, shards, [[at, shard, ref, [shard, ...]], ...], sum]
//
// with the digest of the filter, the number of shards, each key with the shards in which the list goes on there, and
// the CRC-32 of all bytes before it, in four bytes.
func (c Cursor) Text(f task.Filter) string {
	var keys []Key
	shards := map[Key][]int{}
	for shard, k := range c.From {
		if shards[k] == nil {
			keys = append(keys, k)
		}
		shards[k] = append(shards[k], shard)
	}
	var w wire.Writer
	w.Array(6)
	w.Uint(cursorVersion)
	w.Text(c.Cluster)
	w.Uint(Digest(f))
	w.Uint(uint64(len(c.From)))
	w.Array(len(keys))
	for _, k := range keys {
		w.Array(4)
		w.Int(int64(k.At))
		w.Uint(uint64(k.Shard))
		w.Uint(uint64(k.Ref))
		w.Array(len(shards[k]))
		for _, shard := range shards[k] {
			w.Uint(uint64(shard))
		}
	}
	return base64.RawURLEncoding.EncodeToString(appendSum(w.B))
}

// sumBytes is the size of the sum that ends a cursor.
const sumBytes = 5

func appendSum(b []byte) []byte {
	sum := crc32.ChecksumIEEE(b)
	return append(b, 0xce, byte(sum>>24), byte(sum>>16), byte(sum>>8), byte(sum))
}

var errGarbled = errors.New("it is none, or was altered")

// ParseCursor reads what Text returned for the filter, in a cluster of so many shards, whose id is not compared where
// it is "". No text is the cursor of the first page.
func ParseCursor(text string, f task.Filter, shards int, cluster string) (c Cursor, err error) {
	if text == "" {
		return Begin(f, shards), nil
	}
	if len(text) > maxCursor {
		return c, fmt.Errorf("%d bytes exceed the limit of %d", len(text), maxCursor)
	}
	data, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || wire.Scan(data) != nil || len(data) < sumBytes {
		return c, errGarbled
	}
	body := data[: len(data)-sumBytes : len(data)-sumBytes]
	if string(appendSum(body)) != string(data) {
		return c, errGarbled
	}
	r := wire.NewReader(body)
	values, version := r.Array(), r.Uint()
	if r.Err() == nil && version != cursorVersion {
		return c, fmt.Errorf("it is of version %d, this program reads %d: begin anew", version, cursorVersion)
	}
	c.Cluster = r.Text()
	digest, of := r.Uint(), r.Uint()
	switch {
	case values != 6 || r.Err() != nil:
		return c, errGarbled
	case cluster != "" && c.Cluster != cluster:
		return c, errors.New("it is of another cluster")
	case digest != Digest(f):
		return c, errors.New("it is of another filter")
	case of != uint64(shards):
		return c, fmt.Errorf("it is of a cluster of %d shards, this one has %d", of, shards)
	}
	c.From = readKeys(r, shards)
	if r.Close() != nil {
		return Cursor{}, errGarbled
	}
	return c, nil
}

// readKeys reads the key of each shard.
func readKeys(r *wire.Reader, shards int) []Key {
	keys, had := make([]Key, shards), make([]bool, shards)
	for range r.Array() {
		r.ArrayOf(4)
		at, in, ref := r.Int(), r.Uint(), r.Uint()
		if in >= uint64(shards) {
			r.Fail("a key of shard %d of %d", in, shards)
		}
		for range r.Array() {
			shard := r.Uint()
			if r.Err() != nil || shard >= uint64(shards) || had[shard] {
				r.Fail("shard %d of %d, or a second key of it", shard, shards)
				return nil
			}
			keys[shard], had[shard] = Key{events.Millis(at), int(in), events.Ref(ref)}, true
		}
	}
	for shard, had := range had {
		if !had {
			r.Fail("no key of shard %d", shard)
			return nil
		}
	}
	return keys
}
