package engine

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"taskledger/store"
)

// typesOf returns what a node key tells of the types of behaviors: a digest of each, in the order of their ids.
func typesOf(behaviors map[string]Behavior) string {
	digests := make([]string, 0, len(behaviors))
	for _, id := range sortedKeys(behaviors) {
		sum := sha256.Sum256([]byte(behaviors[id].Types()))
		digests = append(digests, hex.EncodeToString(sum[:4]))
	}
	return strings.Join(digests, " ")
}

// typesOn returns the digest of the types of a behavior on a node; "" = the node does not run it, or does not tell.
func typesOn(n *store.NodeInfo, behavior string) string {
	digests := strings.Fields(n.Types)
	for i, id := range n.Behaviors {
		if id == behavior && len(digests) == len(n.Behaviors) {
			return digests[i]
		}
	}
	return ""
}

// typesDiffer reports whether another node runs a behavior with other types of parameters or results.
func (m *member) typesDiffer(behavior string) bool {
	here := typesOn(&store.NodeInfo{Behaviors: sortedKeys(m.exec.behaviors), Types: m.node.types}, behavior)
	for id, n := range m.view.Load().Nodes {
		if there := typesOn(&n, behavior); id != m.session.ID && there != "" && there != here {
			return true
		}
	}
	return false
}
