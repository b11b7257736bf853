// Package store declares the three ports through which the engine reaches the outside, and the errors that they
// return:
//
//   - Store keeps journals, snapshots, the presence of nodes and the ownership of shards. Everything that is true is in it.
//     Package etcdstore implements it on etcd.
//   - Bus carries hints and requests between the members of a cluster. Package natsbus implements it on NATS.
//   - Archive keeps journal entries that have been removed from the store. Package natsbus implements it on JetStream.
//
// The package implements none of them. Store and Archive are unions, for configurations: code that needs a part
// takes that part, such as Journal, Sessions or ArchiveReader.
//
// # Who may write
//
// A Session is the presence of a node: a lease, and a node key that vanishes with it. An Ownership is the right of
// a session to append to the journal of one shard. It is named by the revision at which the owner key was written,
// the epoch. A session takes a shard whose last owner is gone, or gets it handed over.
//
// Every write on behalf of a shard carries its Ownership, and is made only if, in the same transaction, the owner
// key is still the one of that epoch and the session's node key is still there. These two compares are the fence.
// Leases and membership only show when it is worth trying; the fence decides. A write that the fence refuses wraps
// ErrFenced, and then nothing was written, now or later.
//
// # Append and unknown outcomes
//
// Journal.Append writes the entry after a given one, or nothing. Beside the fence it compares that the entry before
// is the one that the caller has folded, and that the next does not exist. So the entries of a shard are 1, 2, 3
// ... without gaps, each written once by one owner.
//
// An answer that is lost leaves the outcome unknown, and unknown is never taken for no. Writes that matter for
// order resolve it themselves: they send the identical transaction again until the answer is definite, which is
// possible because each compares something that its own success makes false. An error that is none of those named
// at a method means that ctx ended before that; the write may still appear later.
//
// # Reads
//
// Reads of the journal, of pointers and of the membership are linearizable, except that a watch (Follow, Batches,
// Answers, WatchMembers) yields what is committed some time later, in order. A watch survives lost connections and
// ends with its context, or when the consumer stops. What is yielded belongs to the receiver.
//
// # Making room
//
// Entries leave the journal in this order: a snapshot that covers them is published (Snapshots), a second one
// follows, the entries are archived and read back (Archiver), and then they are trimmed (Trimmer). The store keeps
// two snapshots of a shard, and trims only what the older one covers. Housekeeping reports how full the store is,
// and compacts it.
//
// # The bus
//
// The bus may lose, repeat and reorder messages, and nothing correct depends on it. A command that gets no answer
// over the bus is put into the Mailbox of the store instead. Commands are numbered by their sender, so that it does
// not matter when both ways deliver one.
//
// # Errors
//
// Callers act on the errors of this package, which an implementation wraps; any other error of a write leaves its
// outcome unknown. The owner of a shard gives it up after ErrFenced and ErrMoved, quarantines it after ErrAlien and
// after events.ErrDamaged, which means that what is stored is corrupt, and waits for room after ErrFull. A node
// ends its session after ErrSessionEnded, and for good after ErrBroken. A reader that gets ErrTrimmed reads the entry
// from the archive. Of the errors of a write only ErrFenced, ErrRefused and ErrAlien promise that nothing was written.
//
// # Another implementation
//
// An implementation needs transactions that compare the versions of several keys, leases that delete a key,
// linearizable reads, and watches from a revision on. Packages storetest and archivetest hold it to these
// contracts:
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, func(t *testing.T) storetest.Fixture { ... })
//	}
//
// storetest opens the same cluster twice, so that one instance can see, overtake and fence what the other does, and
// asks for a way to write keys that no method writes, so that a Repairer has something to find. Package memarchive
// is the smallest implementation of an Archive.
//
// A Receiver takes the copy of a cluster from another store, while no node uses either; package transfer makes one.
//
// All methods of the ports may be called concurrently, but of a Receiver one at a time.
package store
