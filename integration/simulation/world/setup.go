package world

import (
	"strings"
)

const (
	nodes   = 3
	clients = 2
	// quietShare is the share of histories that go on for minutes with scenes in which little happens.
	quietShare = 0.4
	// crowdShare is the share of crowded histories among those that are not roomy.
	crowdShare = 0.3
	// limitedShare is the share of histories in which a behavior has a limit.
	limitedShare = 0.2
	// unwritableShare is the share of histories in which no node can write its session file.
	unwritableShare = 0.1
)

// setup holds the properties of a cluster that last for a whole history.
type setup struct {
	shards     int
	pad        string // makes parameters large
	small      bool   // the store is so small that snapshots become due early: the program is built to take them then
	roomy      bool   // nodes have slots for everything
	crowd      bool   // nodes have one or two slots
	long       bool   // minutes follow in which little happens
	unwritable bool   // no node can write its session file
	archived   bool   // entries leave the journals for an archive
	zones      zones
}

// drawSetup draws the setup of a history.
func drawSetup(d *dice) setup {
	s := setup{shards: pick(d, 2, 4)}
	s.roomy = d.chance(0.2)
	s.crowd = !s.roomy && d.chance(crowdShare)
	s.long = d.chance(quietShare)
	s.unwritable = d.chance(unwritableShare)
	switch x := d.n(100); {
	case x < 3: // entries and snapshots are large, too
		s.shards, s.small, s.pad = 2, true, strings.Repeat("x", 64<<10)
	case x < 50:
		s.small = true
	}
	s.archived = s.small && d.chance(0.9) || d.chance(0.1)
	s.archived = s.archived || s.pad != "" // large entries that stay would fill the store
	s.zones = drawZones(d)
	return s
}

// slots draws the number of slots of a node: with few, tasks run on other nodes than their owner.
func (s *setup) slots(d *dice) int {
	switch {
	case s.roomy:
		return 64
	case s.crowd:
		return pick(d, 1, 1, 2)
	}
	return pick(d, 1, 2, 3, 24)
}
