// Package etcdstore keeps a cluster in etcd: journals, snapshots, sessions, ownership and the mailbox. It implements
// store.Store.
//
// # Format
//
// This is the specification of what is stored; golden files pin it. Every key starts with the cluster's name and a
// slash. <s> is a shard, a decimal number from 0; <lane> a decimal number from 0 to 255.
//
//	key                              value
//	meta                             [2, shards, cluster id, cluster key], or [3, shards, cluster id, cluster key, base]
//	copying                          [1, what is copied, shards, cluster id, cluster key]
//	node/<id>                        [1, name, version, reserved, [behavior ...], types, slots, owner, draining, joined, load,
//	                                 [[behavior, limit] ...], reads]; the last two are left out where there is nothing to tell
//	nodes                            [1, reads]
//	owner/<s>                        [1, session id]
//	journal/<s>/<entry>              an entry as package events seals it; <entry> is 16 hexadecimal digits
//	snapshot/<s>                     [1, [[entry, epoch, parts, bytes, hash] ...]], newest first: the pointer
//	snapshot/<s>/<entry>-<epoch>/<p> a part of a snapshot, bytes as given; <epoch> is decimal, <p> 8 hexadecimal digits from 0
//	mailbox/<s>/<sender>/<lane>      [1, batch]; a nil batch is an empty slot
//	answer/<sender>/<s>/<lane>       [1, answer]
//
// Values other than entries are msgpack arrays that begin with their version. Within a version elements are only
// ever appended, and readers ignore those they do not know; a change of meaning takes a new version. Strings are
// msgpack strings; reads is [kind of event, version of entries, of snapshots, rules of the fold]; cluster key,
// load, batch, answer and hash are binary strings; joined counts milliseconds since 1970 UTC. reserved is a string
// that is written empty and ignored.
//
//   - meta is created once, as the first key of its cluster, never changed and never deleted. Its cluster id and its key,
//     32 bytes, are random.
//   - copying marks a cluster that is being copied here from another store (Receive). It is the first key then, and meta
//     takes its place with the last write. Every write of a copy compares its mod revision. The entries of a copy are
//     written under the byte 0xc1, which begins no entry, and the revision that they had there, 8 bytes, big-endian. The
//     base in the meta of such a cluster is no lower than any revision that was given out there: all revisions of etcd count from it,
//     as sessions, epochs and records tell them.
//   - node/<id> is the only key bound to a lease, the session's. Ids are made by store.SessionID, of the node's name and
//     random characters drawn anew for every session, and never used again, so an absent node is absent for ever. One
//     without a lease is no session's, and counts as absent: etcd would never remove it.
//   - owner/<s> is replaced by compare and never deleted. Its mod revision is the epoch of the ownership. One that cannot be
//     read is replaced like that of an owner that is gone: who wrote it has fenced whoever it named before.
//   - The entries of a shard are numbered 1, 2, 3 ... without gaps; each is written once. A trim deletes from the front and
//     never deletes the last one, nor any from the older snapshot's on.
//   - A snapshot holds the state after its entry, under the epoch of the owner that took it. Each of its parts is written
//     once; bytes is their length together, hash the SHA-256 of their SHA-256 sums in order. The pointer names one or two
//     snapshots, each by exactly these five elements, and is never deleted. Replacing it deletes all parts that do not
//     belong to those it names.
//   - mailbox/<n>, n being the number of shards, is a box that every node reads.
//   - mailbox/ and answer/ hold nothing that lasts. Answering a batch deletes it, reading an answer deletes that, a sender
//     that ends deletes its batches and answers, and a sweep deletes what was not written for long. A sender whose batch was
//     swept posts it again.
//   - nodes holds the versions that a program must read to join; no number in it ever falls. It is replaced by compare. A
//     node joins by a transaction that compares the revision of nodes with the one that it has read.
//   - node/, nodes and owner/ are read and watched as one range: no other kind of key may sort between them.
//
// # Writes
//
// A write whose answer was lost may still be applied, seconds later and after anything else. So every write is a
// transaction that is sent again, unchanged, until etcd gives a definite answer, and every write compares something
// that its own success makes false for ever: the journal the entry before, the owner key and a posted batch the
// revision that they replace, a snapshot pointer too, an answer the revision of its batch. A mailbox key that is
// absent has no revision that could be replaced only once; it is first created as an empty slot, a copy of which
// does no harm: it waits for the next batch, or for the sweep. A part compares that its key is absent. A copy that
// comes when the part was removed again makes it anew, as long as the epoch lasts: no pointer names it, and the
// next one to be written removes it. A trim only deletes numbers that are never written again. The one write
// without a compare deletes the mailbox keys of a sender that has ended: whenever a copy of it comes, nobody has
// written there since but late copies.
//
// A full etcd refuses every transaction that could put something, even one whose compares are false. It takes trims
// and renewals.
package etcdstore
