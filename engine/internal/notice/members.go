package notice

import (
	"log/slog"
	"maps"
	"slices"

	"taskledger/store"
)

// Members logs which nodes have joined and left between two views of the membership. The nodes of the first view
// have not joined. A node that leaves drains first, and its key shows that: one that is gone without has died, or
// has given its session up.
func (l *Log) Members(self string, before, now *store.Membership) {
	if before.Revision == 0 || !l.Enabled(slog.LevelWarn) {
		return
	}
	for _, id := range slices.Sorted(maps.Keys(now.Nodes)) {
		if _, known := before.Nodes[id]; !known && id != self {
			n := now.Nodes[id]
			l.Say(slog.LevelInfo, "a node came", "peer", n.Name, "peer_session", id, "slots", n.Slots, "owner", n.Owner)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(before.Nodes)) {
		if _, present := now.Nodes[id]; present || id == self {
			continue
		}
		if n := before.Nodes[id]; n.Draining {
			l.Say(slog.LevelInfo, "a node left", "peer", n.Name, "peer_session", id)
		} else {
			l.Say(slog.LevelWarn, "a node died", "peer", n.Name, "peer_session", id,
				"why", "its session has ended, and it was not seen to leave")
		}
	}
}
