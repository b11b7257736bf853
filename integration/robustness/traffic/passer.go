package traffic

import (
	"fmt"
	"time"

	"taskledger/integration/robustness/history"
	"taskledger/item"
)

// staysAway is the time that a store without items and keys is left alone: longer than it takes until it is forgotten.
const staysAway = 65 * time.Second

// passing is the store of the clients from a number on that comes and goes.
func passing(first int64) string { return fmt.Sprint("passing-", first) }

// passer is the client of a store that comes and goes. It gives no keys, for which a store would be kept.
type passer struct {
	k     *storeClient
	away  bool  // it has left the store empty
	since int64 // so
}

// Pass has the store that comes and goes come, and go at once, unless it went a moment ago: where it stays away it is
// forgotten. One goroutine at a time may call it, once Keep was called.
func (s *StoreClients) Pass() {
	p := s.passer
	if p.away && time.Duration(s.Now()-p.since) < staysAway {
		return
	}
	p.k.update(&item.Update{Adds: p.k.adds()})
	p.away = p.empty()
	p.since = s.Now()
}

// empty removes all items, and reports whether none is left.
func (p *passer) empty() bool {
	var all []int64
	for _, group := range groups {
		c := p.k.ask(history.ItemCall{Group: group})
		if c.Answer != history.OK {
			return false
		}
		for i := range c.Items {
			all = append(all, c.Items[i].ID)
		}
	}
	return len(all) == 0 || p.k.update(&item.Update{Deletes: all}).Answer == history.OK
}
