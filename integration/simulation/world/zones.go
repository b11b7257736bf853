package world

import (
	"fmt"
	"time"
)

const (
	// otherShare is the share of histories in which a node has other data of a time zone, or none.
	otherShare = 0.4
	// disputed is the zone of which nodes may have other data: in all others it is an hour ahead of UTC.
	disputed = "Europe/Berlin"
)

// zones are the data of time zones that one node has.
type zones struct {
	node  string
	known bool // the disputed zone; else it has no data of it
	ahead time.Duration
}

// drawZones draws which node has other data, if any has.
func drawZones(d *dice) zones {
	if !d.chance(otherShare) {
		return zones{}
	}
	return zones{
		node:  fmt.Sprintf("node-%d", d.n(nodes)),
		known: d.chance(0.8),
		ahead: pick(d, 0, 2*time.Hour),
	}
}

// of returns what finds the zones on a node; nil = as everybody does.
func (z zones) of(node string) func(name string) (*time.Location, error) {
	if node != z.node {
		return nil
	}
	return func(name string) (*time.Location, error) {
		switch {
		case name != disputed:
			return time.LoadLocation(name)
		case !z.known:
			return nil, fmt.Errorf("unknown time zone %s", name)
		}
		return time.FixedZone(name, int(z.ahead.Seconds())), nil
	}
}
