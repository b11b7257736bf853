package etcdstore

import (
	"strconv"
	"sync"
)

// watchesPerStream bounds the watches that share a stream. A client and a server in one process talk over channels without room:
// when more watches end at once than the server queues requests of one stream, which are 16, each side waits for the other for ever.
const watchesPerStream = 12

// streams assigns watches to the streams of a client, which sends watches of equal metadata over one of them.
type streams struct {
	mu      sync.Mutex
	age     uint64 // a stream of an earlier age takes no new watch
	watches []int  // of each stream of this age
}

// stream is one that a watch has joined.
type stream struct {
	of  *streams
	age uint64
	at  int
}

// join lets a watch join the first stream that has room.
func (s *streams) join() stream {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := 0
	for at < len(s.watches) && s.watches[at] >= watchesPerStream {
		at++
	}
	if at == len(s.watches) {
		s.watches = append(s.watches, 0)
	}
	s.watches[at]++
	return stream{s, s.age, at}
}

// name is equal for all watches of the stream.
func (t stream) name() string {
	return strconv.FormatUint(t.age, 10) + "." + strconv.Itoa(t.at)
}

// leave makes room for another watch.
func (t stream) leave() {
	t.of.mu.Lock()
	defer t.of.mu.Unlock()
	if t.age == t.of.age {
		t.of.watches[t.at]--
	}
}

// renew lets later watches join none of the streams that there are.
func (t stream) renew() {
	t.of.mu.Lock()
	defer t.of.mu.Unlock()
	if t.age == t.of.age {
		t.of.age++
		t.of.watches = nil
	}
}
