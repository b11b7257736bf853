// Package pauses extends the owner of the cluster's settings: it answers with them, and makes their changes known.
package pauses

import (
	"taskledger/engine/internal/command"
	"taskledger/engine/internal/shard"
	"taskledger/events"
	"taskledger/projection"
	"taskledger/projection/settings"
)

// AtOwner returns the extension of owners, of whom that of the shard home has the settings. learn takes them when that
// shard begins to be served and after each change; it must not block.
func AtOwner(home int, learn func(settings.State)) shard.NewExtension {
	return func(state *projection.Shard) shard.Extension {
		now, changed := settings.Of(state), false
		return shard.Extension{
			Served: func() {
				if state.ID() == home {
					learn(*now)
				}
			},
			Note: func(ev *events.Event) {
				changed = changed || ev.Kind().Record() == events.OfSettings
			},
			Perform: func() {
				if changed {
					learn(*now)
				}
				changed = false
			},
			Answer: func(c command.Command, _ events.Millis, _ command.Budget) (command.Found, bool) {
				q, is := c.(*command.Settings)
				if !is {
					return command.Found{}, false
				}
				a := command.Answer{Data: command.EncodeSettings(now)}
				return command.Found{Linear: q.Linear, Answer: func() command.Answer { return a }}, true
			},
		}
	}
}
