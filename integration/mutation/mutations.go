package main

import "slices"

// mutations lists the rules of the design, each broken alone.
var mutations = slices.Concat(
	commits, otherWrites, reads, snapshots, decisions, effects, assignments, losses, futures, times, sessions, records,
	requests, callers, lists, items, schedules, works, streams, libraries, subtle,
)
