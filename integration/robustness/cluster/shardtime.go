package cluster

import (
	"taskledger/events"
	"taskledger/task"
)

// shardTimes holds, by shard, a time that the shard has reached: the latest stamp of those of its tasks that were seen. After a step of
// a clock the time of a shard may be far ahead of every clock.
type shardTimes [Shards]events.Millis

// see takes the stamps of a task.
func (s *shardTimes) see(t *task.Task) {
	of := &s[t.ID.Shard(Shards)]
	*of = max(*of, t.CreatedAt, t.StartedAt, t.EndedAt)
}

// far reports whether a task is due farAhead or more of the time that its shard has reached.
func (s *shardTimes) far(t *task.Task) bool {
	return t.Due()-s[t.ID.Shard(Shards)] >= events.Millis(farAhead.Milliseconds())
}
