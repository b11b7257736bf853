// Package filestore makes a store.Store of one process of a journal.Journaler: of files, of memory, or of whatever
// else keeps entries in order.
//
// # What is where
//
// The Journaler keeps the entries of the shards, the snapshots of their folds, and a snapshot of what the store has to
// note itself. Sessions, owners and mailboxes are in memory: they say which node of this process lives, so they end
// with it. A session ends when its time is over; nobody runs for that, since whoever looks at the store looks at the
// clock first.
//
// # Opening
//
// Open looks at the journal, then at what is beside it, such as the archive and the logs of tasks, and changes
// neither. The journal is read once for that, since it tells what it has read. Then the journal begins, the notes of a
// new store are written, and at last what is beside it begins. So a directory that is refused is not changed, and what
// is beside a store never has the id of one that is not there.
//
// # Order
//
// The writes of a shard take turns, and what is checked for a write holds until it is made: so a fence is a look at
// memory. Shards wait for each other in the Journaler alone, which writes together what comes together. A snapshot,
// which is large, is written beside the turns, where none that is kept lies; its fence is looked at before and
// afterwards, when the pointer names it.
//
// # Numbers
//
// Revisions grow over all runs of the store. They are reserved in blocks, which are noted durably before the first one
// of a block is used, so that no epoch and no revision is used twice, whatever a crash loses. Where the Journaler is
// Lossy, numbers of entries are reserved in the same way. After a loss entries without events take the numbers of the
// block, and what followed the last sound entry is given up: the next owner of the shard records events.Recovered in
// its first entry, which is the one behind the block.
//
// # When there is no room
//
// A write for which the Journaler has no room waits for it, as one of a full etcd does, and Usage tells so as long as
// one waits. After a write that nobody knows the outcome of, such as a failed sync, the store makes no further one:
// every write returns that error, until the store is opened again.
package filestore
