package ledger

import "taskledger/events"

// strays are the events of a shard that are of tasks or items of other shards: a client that counted other shards
// than the cluster has brought them there, and reads by their ids do not find them.
type strays struct {
	task  events.TaskID // of the first one
	entry uint64        // that has it
	count int
}

// read looks for strays in an entry of a cluster of so many shards.
func (s *strays) read(e *events.Entry, shards int) {
	for i := range e.Events {
		id := e.Events[i].Task
		if id == "" || id.Shard(shards) == int(e.Shard) {
			continue
		}
		if s.count++; s.count == 1 {
			s.task, s.entry = id, e.Number
		}
	}
}
