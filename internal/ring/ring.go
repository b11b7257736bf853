// Package ring places shards on nodes by capped rendezvous hashing: every member computes the same placement from the
// same list, a join or leave moves few shards, and no node gets more than the ceiling of the mean.
package ring

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"slices"
)

// Place returns for every shard the nodes in the order in which they should serve it: first the one it belongs to,
// then the others by their weight for the shard. Nodes must be unique; their order does not matter.
func Place(shards int, nodes []string) [][]string {
	placement := make([][]string, shards)
	if len(nodes) == 0 {
		return placement
	}
	most := (shards + len(nodes) - 1) / len(nodes)
	load := make(map[string]int, len(nodes))
	for shard := range placement {
		order := byWeight(shard, nodes)
		first := slices.IndexFunc(order, func(n string) bool { return load[n] < most })
		load[order[first]]++
		home := order[first]
		copy(order[1:first+1], order[:first])
		order[0] = home
		placement[shard] = order
	}
	return placement
}

func byWeight(shard int, nodes []string) []string {
	weight := make(map[string]uint64, len(nodes))
	for _, n := range nodes {
		sum := sha256.Sum256(binary.BigEndian.AppendUint16([]byte(n+"\x00"), uint16(shard)))
		weight[n] = binary.BigEndian.Uint64(sum[:])
	}
	return slices.SortedFunc(slices.Values(nodes), func(a, b string) int {
		return cmp.Or(cmp.Compare(weight[b], weight[a]), cmp.Compare(a, b))
	})
}
