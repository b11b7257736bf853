package engine

import (
	"taskledger/engine/internal/pauses"
	"taskledger/engine/internal/shard"
	"taskledger/engine/internal/stores"
)

// extensions are the parts of fronts that live with the owners of a session.
func (m *member) extensions() []shard.NewExtension {
	return []shard.NewExtension{
		pauses.AtOwner(m.learnSettings),
		stores.AtOwner(m.hintItems),
	}
}
