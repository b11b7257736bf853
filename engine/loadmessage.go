package engine

import (
	"fmt"
	"math"

	"taskledger/events"
	"taskledger/store"
)

// loadMessage reports the load and the clock of a node.
type loadMessage struct {
	Node    string
	Count   uint64 // grows with every message of a session
	Clock   int64  // in ms
	Ahead   int64  // of the other nodes', as its node sees it, in ms; 0 = a second at most, or not known
	Backlog []backlogRow
}

// Check refuses more rows than a node sends, and impossible rows. Sums of the numbers that it accepts do not overflow.
func (m *loadMessage) Check() error {
	if len(m.Backlog) > maxBacklogRows {
		return fmt.Errorf("load of %d rows", len(m.Backlog))
	}
	for _, row := range m.Backlog {
		if row.Shard < 0 || row.Shard >= store.MaxShards || len(row.Behavior) > events.MaxBehaviorBytes ||
			row.Ready < 0 || row.Ready > math.MaxInt32 {
			return fmt.Errorf("load of shard %d: %d tasks ready of a behavior of %d bytes",
				row.Shard, row.Ready, len(row.Behavior))
		}
	}
	return nil
}

// ready returns the backlog by shard and behavior.
func (m *loadMessage) ready() map[int]map[string]int {
	all := map[int]map[string]int{}
	for _, row := range m.Backlog {
		shard := int(row.Shard)
		if all[shard] == nil {
			all[shard] = map[string]int{}
		}
		all[shard][row.Behavior] = int(row.Ready)
	}
	return all
}

// backlogRow says how many tasks of a behavior are ready in a shard.
type backlogRow struct {
	Shard    int64
	Behavior string
	Ready    int64
}

const (
	// maxLoadBytes bounds the backlogs in a load message, which holds the longest ones: a node key is read by all
	// at every change of any, and neither NATS nor etcd takes much more than 1 MiB.
	maxLoadBytes = 128 << 10
	// backlogRowBytes is at least what a row takes encoded besides the text of its behavior.
	backlogRowBytes = 16
	// maxBacklogRows bounds the rows of a message: so many rows without text fit into maxLoadBytes.
	maxBacklogRows = maxLoadBytes / backlogRowBytes
)
