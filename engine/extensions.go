package engine

import (
	"time"

	"taskledger/engine/internal/deadlines"
	"taskledger/engine/internal/logsweep"
	"taskledger/engine/internal/pauses"
	"taskledger/engine/internal/schedules"
	"taskledger/engine/internal/shard"
	"taskledger/engine/internal/stores"
	"taskledger/engine/internal/works"
	"taskledger/projection/settings"
)

// itemHints tell the callers of task stores that items are there.
const itemHints = "items"

// ownerExtensions returns the parts of fronts that live with the owner of a shard, by what they have the session do:
// learn takes the settings, which the shard home has, and hints sends hints of a name. node has the session, zones
// finds its time zones, and logs removes the logs of tasks that are gone.
func ownerExtensions(
	home int, learn func(settings.State), hints func(name string) sendHint,
	node string, zones func(string) (*time.Location, error), logs *logsweep.Sweep,
) []shard.NewExtension {
	return []shard.NewExtension{
		pauses.AtOwner(home, learn),
		stores.AtOwner(hints(itemHints)),
		schedules.AtOwner(node, zones),
		works.AtOwner,
		deadlines.AtOwner,
		logs.AtOwner,
	}
}

// clientExtensionsOf returns the parts of fronts that live in every process.
func clientExtensionsOf(items *stores.Client) clientExtensions {
	return clientExtensions{{
		Hint:   itemHints,
		Hinted: items.Hinted,
		Again:  items.Again,
		Drain:  items.Drain,
		Run:    items.Sweep,
		Close:  items.Close,
	}}
}
