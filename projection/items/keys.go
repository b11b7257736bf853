package items

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/btree"

	"taskledger/events"
)

// Times are counted by the entries of the shard, as package steady does.
const (
	// KeysPerClient bounds the keys of a client of a store that are remembered, the last ones.
	KeysPerClient = 64
	// KeysLast bounds the time for which a key is remembered.
	KeysLast events.Millis = 3_600_000
	// KeysSafe is the time for which each key is remembered, however many others there are.
	KeysSafe = KeysLast / 6
	// MaxKeys bounds the keys that a shard remembers. Beyond it the store that has the most gives up those that are older
	// than KeysSafe. Where it has none, it gets no further one, nor does any other that has its share, which is an
	// equal part of MaxKeys. They take 5 to 15 MB of a snapshot then, which no other limit counts.
	MaxKeys = 50_000
	// mostKeys bounds their number, when many stores with less than their share come.
	mostKeys = 2 * MaxKeys
	// ageMargin is for how long a repetition may have been under way since it told its age, beyond what its way to the
	// owner has added to that; and by how much the clocks may differ that have added it.
	ageMargin = 5 * time.Minute
	// dropsAtOnce bounds the keys that one more has forgotten.
	dropsAtOnce = 1_000
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
	clients map[keyName][]*key    // those of a client, oldest first
	stores  *btree.BTreeG[*Store] // those with keys, the one first that has the most
}

// keyName is a key of a client, "CLIENT/KEY", or a client, in a store.
type keyName struct {
	store *Store
	name  string
}

func (k *key) key() keyName { return keyName{k.store, events.RequestKey(k.request)} }

func (k *key) client() keyName { return keyName{k.store, clientIn(k.request)} }

func clientIn(request string) string {
	client, _, _ := strings.Cut(request, "/")
	return client
}

// clientOf is the client that made a request id, as events.ItemRequestID does.
func clientOf(request string) (client uint64, is bool) {
	text, _, _ := strings.Cut(request, "/")
	client, err := strconv.ParseUint(text, 10, 64)
	is = err == nil && client > 0 && client <= events.MaxItemNumber && strconv.FormatUint(client, 10) == text
	return client, is && len(request) <= events.MaxNameBytes && len(events.RequestKey(request)) < len(request)
}

// byKeys orders stores by how many keys they have, the one with the most first.
func byKeys(a, b *Store) bool {
	return cmp.Or(cmp.Compare(b.keys.Len(), a.keys.Len()), cmp.Compare(a.number, b.number)) < 0
}

// keyRoom reports whether a further key of a store has room, or how long it takes until one is given up for it.
func (s *Stores) keyRoom(store string, now events.Millis) (room bool, wait events.Millis) {
	ks := &s.keys
	n := ks.inOrder.Len()
	if n < MaxKeys {
		return true, 0
	}
	_, oldest, _ := ks.inOrder.Min()
	most, _ := ks.stores.Min()
	wait = KeysSafe - s.age(most.oldest(), now)
	in, sharers := s.byName[store], ks.stores.Len()
	own := 0
	if in != nil {
		own = in.keys.Len()
	}
	if own == 0 {
		sharers++
	} else {
		wait = min(wait, KeysSafe-s.age(in.oldest(), now))
	}
	return wait < 0 || s.age(oldest, now) > KeysLast || own < MaxKeys/sharers && n < mostKeys, max(wait, 1)
}

// age returns how long ago a request was carried out.
func (s *Stores) age(k *key, now events.Millis) events.Millis { return s.clock.Since(k.at, now) }

// remember adds the key of a request that has room, and forgets those that are too many or too old by then.
func (s *Stores) remember(k *key) {
	ks := &s.keys
	for range dropsAtOnce {
		_, oldest, some := ks.inOrder.Min()
		if !some || s.age(oldest, k.at) <= KeysLast {
			break
		}
		s.drop(oldest)
	}
	for range dropsAtOnce {
		if ks.inOrder.Len() < MaxKeys || !s.giveUp(k) {
			break
		}
	}
	s.putKey(k)
	if of := ks.clients[k.client()]; len(of) > KeysPerClient {
		s.drop(of[0])
	}
}

// giveUp makes room for a key by that of the store with the most, or else of its own.
func (s *Stores) giveUp(k *key) bool {
	most, _ := s.keys.stores.Min()
	for _, in := range []*Store{most, k.store} {
		if oldest := in.oldest(); oldest != nil && s.age(oldest, k.at) > KeysSafe {
			in.gaveUp = oldest.at
			s.drop(oldest)
			return true
		}
	}
	return false
}

// oldest is the oldest key of the store, nil without one.
func (in *Store) oldest() *key {
	_, k, _ := in.keys.Min()
	return k
}

// putKey places a key that is newer than all others.
func (s *Stores) putKey(k *key) {
	ks := &s.keys
	if ks.byName == nil {
		ks.byName, ks.clients = map[keyName]*key{}, map[keyName][]*key{}
		ks.stores = btree.NewBTreeGOptions(byKeys, quiet)
	}
	if before := ks.byName[k.key()]; before != nil { // it was forgotten by the clock, and not yet here
		s.drop(before)
	}
	ks.inOrder.Set(k.by, k)
	ks.byName[k.key()] = k
	ks.clients[k.client()] = append(ks.clients[k.client()], k)
	ks.stores.Delete(k.store)
	k.store.keys.Set(k.by, k)
	ks.stores.Set(k.store)
	s.reindex(k.store)
}

// drop forgets a key.
func (s *Stores) drop(k *key) {
	ks := &s.keys
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
	ks.stores.Delete(k.store)
	if k.store.keys.Delete(k.by); k.store.keys.Len() > 0 {
		ks.stores.Set(k.store)
	}
	s.reindex(k.store)
}

// find returns the request of a key that counts at a time; nil = none.
func (s *Stores) find(in *Store, request string, now events.Millis) *key {
	k := s.keys.byName[keyName{in, events.RequestKey(request)}]
	if k == nil || s.age(k, now) > KeysLast {
		return nil
	}
	return k
}

// since tells what a repetition says of the time since it was first asked.
type since struct {
	asked  time.Duration // 0 = never before
	within int           // so many requests of the client, at most, were carried out since then; 0 = nobody has counted
}

// mayHaveForgotten reports whether a request that is not known may have been carried out. in is nil for a store
// that is not there.
func (s *Stores) mayHaveForgotten(in *Store, request string, first since, now events.Millis) bool {
	if first.asked <= 0 {
		return false
	}
	ago, gaveUp := events.Millis((first.asked + ageMargin).Milliseconds()), s.lostAt
	if in != nil {
		gaveUp = max(gaveUp, in.gaveUp)
		// Of a client that has used all of its keys those before the oldest are forgotten, unless it has counted that
		// no other can have driven this one out.
		of, counted := s.keys.clients[keyName{in, clientIn(request)}], first.within > 0 && first.within <= KeysPerClient
		if !counted && len(of) == KeysPerClient && s.age(of[0], now) <= ago {
			return true
		}
	}
	return ago > KeysLast || gaveUp != 0 && s.clock.Since(gaveUp, now) <= ago
}
