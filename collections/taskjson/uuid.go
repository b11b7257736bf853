package taskjson

import (
	"strconv"

	"github.com/google/uuid"

	"taskledger/events"
)

// The namespaces of the UUIDs of runs are part of what is stored: by them the run of a tick, or of a request that is
// sent again, has the id that it had. They were drawn at random.
var (
	tickNamespace = uuid.MustParse("52b52c5c-0b3a-47f3-a460-c28cd3089b62")
	keyNamespace  = uuid.MustParse("27217618-7c42-4f06-b54c-20710f09cf92")
)

// OfTick returns the UUID, version 5, of the run of a collection's tick.
func OfTick(collection string, tick events.Millis) uuid.UUID {
	return uuid.NewSHA1(tickNamespace, []byte(collection+"/"+strconv.FormatInt(int64(tick), 10)))
}

// OfKey returns the UUID, version 5, of the run of a collection that a principal asked for with a key.
func OfKey(collection, principal, key string) uuid.UUID {
	name := collection + "/" + strconv.Itoa(len(principal)) + ":" + principal + key // which no other three make
	return uuid.NewSHA1(keyNamespace, []byte(name))
}
