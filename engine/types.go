package engine

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"taskledger/store"
)

// typeDigests returns the digests of the types of behaviors for a node key, in the order of the behaviors' ids.
func typeDigests(ids []string, types func(id string) string) string {
	digests := make([]string, 0, len(ids))
	for _, id := range ids {
		sum := sha256.Sum256([]byte(types(id)))
		digests = append(digests, hex.EncodeToString(sum[:4]))
	}
	return strings.Join(digests, " ")
}

// typesOn returns the digest of the types of a behavior on a node; "" = the node does not run it, or reports none.
func typesOn(n *store.NodeInfo, behavior string) string {
	digests := strings.Fields(n.Types)
	for i, id := range n.Behaviors {
		if id == behavior && len(digests) == len(n.Behaviors) {
			return digests[i]
		}
	}
	return ""
}
