package command

import (
	"taskledger/events"
	"taskledger/projection"
	"taskledger/store"
)

// Sightings is when reads of the membership last showed each node, by session id.
type Sightings map[string]events.Millis

// After returns the sightings after a read at a time. Of a node that it does not show the last sighting is kept if its attempts are
// still served.
func (s Sightings) After(at events.Millis, present map[string]store.NodeInfo, served func(node string) bool) Sightings {
	next := make(Sightings, len(present))
	for node := range present {
		next[node] = max(at, s[node])
	}
	for node, seen := range s {
		if _, is := present[node]; !is && served(node) {
			next[node] = seen
		}
	}
	return next
}

// Of is when the node was last seen that runs the task; 0 = none does, or it was not seen. Who is shown the task moves its stamps on by it.
func (s Sightings) Of(t *projection.Task) events.Millis { return s[t.Node] }
