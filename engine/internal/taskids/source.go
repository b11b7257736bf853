// Package taskids draws random task ids.
package taskids

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"taskledger/events"
)

const (
	// stickiness is the time for which random ids are drawn for the same shards: tasks submitted together share an
	// entry, and events per entry decide what a task costs.
	stickiness = 30 * time.Millisecond
	// perShard is the number of submits at once that are enough for one shard. Beyond it the entries of two are as
	// large as they need to be, and one is decided while the other is written.
	perShard = 512
)

// maxSpare bounds for each shard the stored ids that were drawn while another shard was wanted.
const maxSpare = 4096

// Source draws random task ids that fall into few of the preferred shards, others every 30 ms: into one while few
// submits wait for their answers.
type Source struct {
	Submitting atomic.Int64 // submits that wait for their answers

	mu      sync.Mutex
	shards  int
	prefer  []int // all shards when empty
	at      int   // the first of those that ids are drawn for
	abreast int   // how many they are
	turn    int   // counts ids
	most    int64 // the highest value of Submitting since until was set
	until   time.Time
	spare   [][]events.TaskID
}

// New returns a source for a cluster of so many shards. It begins with a random one: processes that draw few ids fall
// into all shards together.
func New(shards int) *Source {
	return &Source{
		shards:  shards,
		at:      rand.IntN(shards),
		abreast: 1,
		spare:   make([][]events.TaskID, shards),
	}
}

// Prefer names the shards that ids are drawn for: those that this process owns.
func (s *Source) Prefer(shards []int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.prefer, s.until = shards, time.Time{}
}

// Draw returns a task id of 128 random bits.
func (s *Source) Draw(now time.Time) events.TaskID {
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
		events.IDEncoding.Encode(text[:], b[:])
		shard := events.ShardOf(text[:], s.shards)
		if shard == want {
			return events.TaskID(text[:])
		}
		if len(s.spare[shard]) < maxSpare && s.preferred(shard) {
			s.spare[shard] = append(s.spare[shard], events.TaskID(text[:]))
		}
	}
}

func (s *Source) preferred(shard int) bool {
	return len(s.prefer) == 0 || slices.Contains(s.prefer, shard)
}

// current is the shard that the next id is drawn for.
func (s *Source) current(now time.Time) int {
	if now.After(s.until) {
		s.at += s.abreast
		s.abreast = 1 + int(s.most/perShard)
		s.most, s.until = 0, now.Add(stickiness)
	}
	s.most = max(s.most, s.Submitting.Load())
	s.turn++
	at := s.at + s.turn%s.abreast
	if len(s.prefer) == 0 {
		return at % s.shards
	}
	return s.prefer[at%len(s.prefer)]
}
