package world

import (
	"taskledger/engine"
	"taskledger/integration/simulation/work"
)

// job is what a task does.
type job = work.Job

// The behaviors.
const (
	once  = work.Once
	again = work.Again
	brief = work.Brief
	merge = work.Merge
	every = work.Every
)

func behavior(p *process, id string) engine.Behavior {
	for _, b := range p.behaviors {
		if b.ID() == id {
			return b
		}
	}
	panic("no behavior " + id)
}
