package world

import (
	"taskledger/integration/simulation/work"
)

// job describes the work of a task.
type job = work.Job

// The behaviors.
const (
	once  = work.Once
	again = work.Again
	brief = work.Brief
	merge = work.Merge
	every = work.Every
	walk  = work.Walk
	brake = work.Brake
	alone = work.Alone

	follow   = work.Follow
	rehearse = work.Rehearse
	vague    = work.Vague
	updates  = work.Updates
)
