// Package drivers runs collections: it has the behavior "collection", whose parameters are collections.Params.
//
//	engine.NodeConfig{
//		Behaviors: []task.Behavior{drivers.Behavior(drivers.Options{Root: "/srv/synced"})},
//		Limits:    map[string]int{collections.Behavior: 16},
//	}
//
// What a run does depends on its driver:
//
//	exec      runs a program as behavior "exec" does, without a time-out of its own
//	fetch     brings a file to the node, when it has changed: see Options.Root
//	go:NAME   calls the Driver of that name
//	noop      does nothing, and says so
//
// A run has no result: what it did stands in its log, a line of fetch and noop, and what programs write. One that fails
// says why in the last line of its log, as an error. The policy of its task bounds attempts and their time.
//
// A run on a node that lacks what it needs fails for good, with the code builtin.CodeRefused, and names the node and
// the flag of serve: give all nodes the same. So does one whose program is allowed and is not there, with the code
// builtin.CodeNotFound, or cannot be executed, with builtin.CodePermission.
package drivers
