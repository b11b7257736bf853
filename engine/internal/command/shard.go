package command

import (
	"fmt"

	"taskledger/store"
)

// Shard names the shard of an owner among those of its cluster.
type Shard struct {
	Number int
	Count  int // 0 = not known: no command is misdirected
}

// addressed is a command that names a task, a store or another id by which its shard is chosen.
type addressed interface {
	Shard(count int) int
}

// Misdirected refuses a command that belongs to another shard: its sender counts other shards than the cluster has.
func (s Shard) Misdirected(c Command) (refusal Answer, refused bool) {
	to, ok := c.(addressed)
	if !ok || s.Count == 0 {
		return Answer{}, false
	}
	of := to.Shard(s.Count)
	if of == s.Number {
		return Answer{}, false
	}
	problem := fmt.Sprintf("what the command names is of shard %d of %d, and was sent to shard %d: "+
		"Shards of the client must be %d", of, s.Count, s.Number, s.Count)
	return Refused(AnswerInvalid, "%v", &store.InvalidError{Field: "shards", Problem: problem}), true
}
