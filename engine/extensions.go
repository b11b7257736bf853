package engine

import (
	"taskledger/engine/internal/pauses"
	"taskledger/engine/internal/shard"
	"taskledger/engine/internal/stores"
	"taskledger/projection/settings"
)

// extensions returns the parts of fronts that live with the owner of a shard, by what they have the session do.
func extensions(learn func(settings.State), hint func(sender string, h stores.Hint)) []shard.NewExtension {
	return []shard.NewExtension{
		pauses.AtOwner(learn),
		stores.AtOwner(hint),
	}
}
