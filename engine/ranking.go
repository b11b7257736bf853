package engine

import (
	"taskledger/internal/ring"
	"taskledger/store"
)

// ranking orders the nodes that may own shards, for each shard.
type ranking struct {
	revision int64      // of the membership; 0 = none is ranked
	order    [][]string // by shard: session ids, best first
}

// rankNodes ranks the nodes of a membership. Nodes are placed by name, so that a restart moves nothing; nodes of one
// name are distinguished by their ids.
func rankNodes(v *store.Membership, shards int) ranking {
	ids := map[string]string{}
	var keys []string
	for id, n := range v.Nodes {
		if !n.Owner || n.Draining {
			continue
		}
		key := n.Name
		if _, taken := ids[key]; taken || sameName(v, n) {
			key += "\x00" + id
		}
		ids[key] = id
		keys = append(keys, key)
	}
	order := ring.Place(shards, keys)
	for _, nodes := range order {
		for i := range nodes {
			nodes[i] = ids[nodes[i]]
		}
	}
	return ranking{v.Revision, order}
}

// sameName reports whether several nodes that may own shards have the name of a node.
func sameName(v *store.Membership, n store.NodeInfo) bool {
	same := 0
	for _, other := range v.Nodes {
		if other.Name == n.Name && other.Owner && !other.Draining {
			same++
		}
	}
	return same > 1
}

// best returns the session to which a shard falls; "" = there is none.
func (r *ranking) best(shard int) string {
	if r.revision == 0 || len(r.order[shard]) == 0 {
		return ""
	}
	return r.order[shard][0]
}
