package meter

import (
	"fmt"
	"time"
)

// Readiness describes the session of a node, and whether the node takes part in the work of its cluster.
type Readiness struct {
	Session  string        // id; "" = none at the moment
	Silent   time.Duration // since the store was last asked to renew the session, and did
	Silence  string        // why it did not, as the last attempt tells; "" = it did
	Renewed  bool          // the session was renewed lately enough that the node takes on work
	Settled  bool          // since the session began the node has once served all shards that fell to it
	Draining bool
}

// NotReady says why the node should not be counted on now; "" = it is ready.
func (r *Readiness) NotReady() string {
	switch {
	case r.Session == "":
		return "the node has no session: it has not joined yet, or cannot reach the store"
	case r.Draining: // its session may be over by now
		return "the node drains"
	case !r.Renewed:
		why := fmt.Sprintf("the store has not renewed the session for %s", r.Silent.Round(100*time.Millisecond))
		if r.Silence != "" {
			why += ": " + r.Silence
		}
		return why
	case !r.Settled:
		return "the node does not serve its shards yet"
	}
	return ""
}
