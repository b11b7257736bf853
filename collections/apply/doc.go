// Package apply makes the collections of a cluster those of a file.
//
//	file, warnings, err := apply.Read("sync.yaml", text)
//	a := apply.Applier{Schedules: schedules, Nodes: nodes, Stores: stores, By: "ops@host"}
//	is, err := a.Compare(ctx, file) // refuses the file, or says what becomes of each collection
//	done, err := a.Apply(ctx, is)
//
// A file is the whole truth: a collection of the cluster that does not stand in it is removed, while its runs and its
// history stay. Collections are the schedules of behavior collections.Behavior whose parameters name them; others of
// that behavior are left as they are, and told.
//
// Each collection is changed by a numbered command, on condition that its schedule is as it was compared. So an apply
// that died half way can be done again, and of several that go on at the same time the one that is recorded last finds
// all as its file says, or sets it anew. What is as it should be costs no command.
//
// The last MaxApplied files that were applied stand in the task store Store of the cluster, an item each in the group
// Group, in the order of their ids. Its data are Applied as JSON. The next file is recorded once all its commands are
// done, under a key that names the item before it: so nobody records two files behind one.
//
// Nodes are asked what they have of what the collections need. It reads no file, and knows no server.
package apply
