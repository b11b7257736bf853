package items

import (
	"strconv"
	"strings"

	"github.com/tidwall/btree"

	"taskledger/events"
)

const (
	// KeysPerClient is how many keys of a client of a store are remembered, the last ones.
	KeysPerClient = 64
	// KeysLast is how long a key is remembered, in entry time.
	KeysLast events.Millis = 3_600_000
	// MaxKeys bounds the keys that a shard remembers: beyond it the oldest is forgotten. They take 5 to 15 MB of a snapshot then, which no other
	// limit counts.
	MaxKeys = 50_000
)

// key is a request that was carried out. It is never changed.
type key struct {
	store   *Store
	request string // made by events.ItemRequestID
	first   uint64 // id that the first change of the request got, if it made any
	at      events.Millis
	by      events.Ref // the event that tells of it
}

// keys are those of the requests of all stores of a shard.
type keys struct {
	inOrder btree.Map[events.Ref, *key]
	byName  map[keyName]*key
	clients map[keyName][]*key // those of a client, oldest first
}

// keyName is a key of a client, "CLIENT/KEY", or a client, in a store.
type keyName struct {
	store *Store
	name  string
}

func (k *key) key() keyName { return keyName{k.store, events.RequestKey(k.request)} }

func (k *key) client() keyName {
	client, _, _ := strings.Cut(k.request, "/")
	return keyName{k.store, client}
}

// clientOf is the client that made a request id, as events.ItemRequestID does.
func clientOf(request string) (client uint64, is bool) {
	text, _, _ := strings.Cut(request, "/")
	client, err := strconv.ParseUint(text, 10, 64)
	is = err == nil && client > 0 && client <= events.MaxItemNumber && strconv.FormatUint(client, 10) == text
	return client, is && len(request) <= events.MaxNameBytes && len(events.RequestKey(request)) < len(request)
}

// add remembers a request, and forgets those that are too many or too old by then.
func (ks *keys) add(k *key) {
	ks.put(k)
	if of := ks.clients[k.client()]; len(of) > KeysPerClient {
		ks.drop(of[0])
	}
	for {
		_, oldest, some := ks.inOrder.Min()
		if !some || ks.inOrder.Len() <= MaxKeys && oldest.at+KeysLast >= k.at {
			return
		}
		ks.drop(oldest)
	}
}

// put places a key that is newer than all others.
func (ks *keys) put(k *key) {
	if ks.byName == nil {
		ks.byName, ks.clients = map[keyName]*key{}, map[keyName][]*key{}
	}
	if before := ks.byName[k.key()]; before != nil { // it was forgotten by the clock, and not yet here
		ks.drop(before)
	}
	ks.inOrder.Set(k.by, k)
	ks.byName[k.key()] = k
	ks.clients[k.client()] = append(ks.clients[k.client()], k)
}

// drop forgets the oldest key of a client, or one that comes again.
func (ks *keys) drop(k *key) {
	ks.inOrder.Delete(k.by)
	delete(ks.byName, k.key())
	of := ks.clients[k.client()]
	at := 0
	for of[at] != k {
		at++
	}
	copy(of[at:], of[at+1:])
	of[len(of)-1] = nil
	if of = of[:len(of)-1]; len(of) == 0 {
		delete(ks.clients, k.client())
	} else {
		ks.clients[k.client()] = of
	}
}

// find returns the request of a key that counts at a time; nil = none.
func (ks *keys) find(in *Store, request string, now events.Millis) *key {
	k := ks.byName[keyName{in, events.RequestKey(request)}]
	if k == nil || k.at+KeysLast < now {
		return nil
	}
	return k
}
