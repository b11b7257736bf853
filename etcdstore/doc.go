// Package etcdstore keeps a cluster in etcd: journals, sessions, ownership and the mailbox. It implements engine.Store.
//
// # Format
//
// This is the specification of what is stored; golden files pin it. Every key starts with the cluster's name and a slash.
// <s> is a shard, a decimal number from 0; <lane> a decimal number from 0 to 255.
//
//	key                              value
//	meta                             [1, shards, cluster id, cluster key]
//	node/<id>                        [1, name, version, address, [behavior ...], types, slots, owner, draining, joined, load]
//	owner/<s>                        [1, session id]
//	journal/<s>/<entry>              an entry as package events seals it; <entry> is 16 hexadecimal digits
//	snapshot/<s>                     [1, [[entry, owner revision, parts] ...]], newest first: the pointer
//	mailbox/<s>/<sender>/<lane>      [1, batch]; a nil batch is an empty slot, not a letter
//	answer/<sender>/<s>/<lane>       [1, answer]
//
// Values other than entries are msgpack arrays that begin with their version. Within a version elements are only ever
// appended, and readers ignore those they do not know; a change of meaning takes a new version. Strings are msgpack
// strings; cluster key, load, batch and answer are binary strings; joined counts milliseconds since 1970 UTC.
//
//   - meta is created once, never changed and never deleted. Its cluster id and its key, 32 bytes, are random.
//   - node/<id> is the only key bound to a lease, the session's. Ids are 16 random characters of [a-z2-7], drawn anew for
//     every session and never used again, so an absent node is absent for ever.
//   - owner/<s> is replaced by compare and never deleted. Its mod revision is the epoch of the ownership.
//   - The entries of a shard are numbered 1, 2, 3 ... without gaps; each is written once. A trim deletes from the front and
//     never deletes the last one.
//   - mailbox/ and answer/ hold nothing that lasts. Answering a letter deletes it, reading an answer deletes that, a sender
//     that ends deletes all its mail, and a sweep deletes what was not written for long. A sender whose letter was swept
//     posts it again.
//   - node/ and owner/ are read and watched as one range: no other kind of key may sort between them.
//
// # Writes
//
// A write whose answer was lost may still be applied, seconds later and after anything else. So every write is a
// transaction that is sent again, unchanged, until etcd gives a definite answer, and every write compares something that
// its own success makes false for ever: the journal the entry before, the owner key and a letter the revision they
// replace, an answer the revision of its letter. A mailbox key that is absent has no revision that could be replaced only
// once; it is first created as an empty slot, a copy of which does no harm: it waits for the next letter, or for the sweep.
// The one write without a compare deletes the mail of a sender that has ended: whenever a copy of it comes, nobody has
// written there since but late copies.
package etcdstore
