package engine

import (
	"encoding/base32"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"taskledger/events"
)

// stickiness is how long random ids are drawn for one shard: tasks submitted together share an entry, and events per
// entry decide what a task costs.
const stickiness = 10 * time.Millisecond

// maxSpare bounds the ids kept for each shard that were drawn while another was wanted.
const maxSpare = 1024

var idEncoding = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// randomID returns 80 random bits as 16 letters and digits: a session, sender or cluster id.
func randomID() string {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:], rand.Uint64())
	binary.BigEndian.PutUint64(b[8:], rand.Uint64())
	return idEncoding.EncodeToString(b[:10])
}

// idSource draws random task ids that fall into one of the preferred shards, a different one every 10 ms.
type idSource struct {
	mu     sync.Mutex
	shards int
	prefer []int // all shards when empty
	at     int
	until  time.Time
	spare  [][]events.TaskID
}

func newIDSource(shards int) *idSource {
	return &idSource{shards: shards, spare: make([][]events.TaskID, shards)}
}

// setPreferred names the shards that ids are drawn for: those that this process owns.
func (s *idSource) setPreferred(shards []int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.prefer, s.until = shards, time.Time{}
}

// draw returns a task id of 128 random bits.
func (s *idSource) draw(now time.Time) events.TaskID {
	s.mu.Lock()
	defer s.mu.Unlock()
	want := s.current(now)
	if n := len(s.spare[want]); n > 0 {
		id := s.spare[want][n-1]
		s.spare[want] = s.spare[want][:n-1]
		return id
	}
	for {
		var b [16]byte
		var text [26]byte
		binary.BigEndian.PutUint64(b[:], rand.Uint64())
		binary.BigEndian.PutUint64(b[8:], rand.Uint64())
		idEncoding.Encode(text[:], b[:])
		shard := events.ShardOf(text[:], s.shards)
		if shard == want {
			return events.TaskID(text[:])
		}
		if len(s.spare[shard]) < maxSpare && s.preferred(shard) {
			s.spare[shard] = append(s.spare[shard], events.TaskID(text[:]))
		}
	}
}

func (s *idSource) preferred(shard int) bool {
	return len(s.prefer) == 0 || slices.Contains(s.prefer, shard)
}

func (s *idSource) current(now time.Time) int {
	if now.After(s.until) {
		s.at++
		s.until = now.Add(stickiness)
	}
	if len(s.prefer) == 0 {
		return s.at % s.shards
	}
	return s.prefer[s.at%len(s.prefer)]
}
