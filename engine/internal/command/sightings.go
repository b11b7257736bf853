package command

import (
	"taskledger/events"
	"taskledger/projection"
	"taskledger/store"
)

// Sightings is when reads of the membership last showed each node, by session id.
type Sightings map[string]events.Millis

// After returns the sightings after a read at a time. For a node that the read does not show it retains the last
// sighting while the attempts of the node are still served.
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

// Of returns when the node that runs the task was last seen; 0 = no node runs it, or it was not seen. Readers of
// the task move its stamps on by it.
func (s Sightings) Of(t *projection.Task) events.Millis { return s[t.Node] }
