package check

import (
	"encoding/json"
	"strconv"
	"strings"

	"taskledger/events"
	"taskledger/integration/robustness/history"
)

// stream is a stream on the way through its journal.
type stream struct {
	*checker
	task     *task
	feed     *history.Feed
	visits   []*history.Visit // that are left
	life     *streamLife
	attempts map[events.Ref]*streamAttempt
	byKey    map[string][]uint64
}

// streamLife tells what became of changes in a life of the task. Lives of a pushed stream count as one: they have one
// feed.
type streamLife struct {
	token      uint64          // the place that it tells
	planned    int64           // when the last run was
	partitions int             // of it
	visited    map[change]bool // was done by an attempt, whatever that came to
	held       map[change]bool // was held
	excused    map[change]bool // later changes of its key need not wait for it any more
	last       map[string]*history.Visit
	holds      map[uint32]*streamHold
}

// change is a change of a feed.
type change struct {
	place uint64
	key   string
}

// streamAttempt is an attempt of the stream, or of a hold.
type streamAttempt struct {
	by      string // its task
	life    *streamLife
	hold    *streamHold // nil = of the stream
	token   uint64      // behind which it goes on
	entry   uint64      // that started it
	over    bool
	visited map[change]bool // by it, before it was over
}

type streamHold struct {
	changes []change
	visits  map[change]int // by its task
}

func newStreamLife() *streamLife {
	return &streamLife{
		visited: map[change]bool{},
		held:    map[change]bool{},
		excused: map[change]bool{},
		last:    map[string]*history.Visit{},
		holds:   map[uint32]*streamHold{},
	}
}

func (l *streamLife) excuse(changes ...change) {
	for _, is := range changes {
		l.excused[is] = true
	}
}

// placeOf returns the place that a token tells.
func (s *stream) placeOf(token string) uint64 {
	place, _ := strconv.ParseUint(token, 10, 64)
	return min(place, uint64(len(s.feed.Keys)))
}

// changesAt returns the changes at a place.
func (s *stream) changesAt(place uint64) (all []change) {
	if place == 0 || place > uint64(len(s.feed.Keys)) {
		return nil
	}
	for _, key := range s.feed.Keys[place-1] {
		all = append(all, change{place, key})
	}
	return all
}

// placesOf returns the places with a change of a key.
func (s *stream) placesOf(key string) []uint64 {
	if s.byKey == nil {
		s.byKey = map[string][]uint64{}
		for i, keys := range s.feed.Keys {
			for _, key := range keys {
				s.byKey[key] = append(s.byKey[key], uint64(i)+1)
			}
		}
	}
	return s.byKey[key]
}

// heldPlace returns the place of a change that is held: its name begins with it, or its value has it.
func heldPlace(b *events.ChangeHeld) uint64 {
	text, _, _ := strings.Cut(b.At, "@") // when its message came follows
	text, _, _ = strings.Cut(text, ".")  // and which of its changes it is
	if place, err := strconv.ParseUint(text, 10, 64); err == nil {
		return place
	}
	var told struct {
		Value struct {
			Place uint64 `json:"place"`
		} `json:"value"`
	}
	_ = json.Unmarshal(b.Data, &told) // place 0 is none
	return told.Value.Place
}
