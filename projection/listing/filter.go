// Package listing says what a list of tasks is: which tasks match, in which order they come, where a list goes on, and
// how the owner of a shard finds its part. It is pure.
//
// A list is ordered by creation, newest first, over all shards. Time never runs back within a shard, so that the tasks
// of a shard are in the order of their Keys, and a Key says where the list goes on in every shard, whatever was
// created, changed or deleted meanwhile.
package listing

import (
	"crypto/sha256"
	"encoding/binary"
	"time"

	"taskledger/events"
	"taskledger/internal/wire"
	"taskledger/task"
)

// Digest returns a sum of what a filter selects.
func Digest(f task.Filter) uint64 {
	var w wire.Writer
	w.Array(11)
	w.Uint(uint64(f.Status))
	w.Uint(uint64(f.Substatus))
	for _, text := range []string{f.Behavior, f.Affinity, f.AffinityPrefix, f.Node, f.Creator} {
		w.Text(text)
	}
	for _, t := range []time.Time{f.CreatedFrom, f.CreatedTo, f.EndedFrom, f.EndedTo} {
		w.Int(int64(events.MillisOf(t)))
	}
	if f.Work { // cursors of filters without it stay as they are
		w.Bool(true)
	}
	if f.Tag != "" {
		w.Text(f.Tag)
	}
	sum := sha256.Sum256(w.B)
	return binary.BigEndian.Uint64(sum[:])
}
