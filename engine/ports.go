package engine

import (
	"context"
	"errors"
	"iter"
	"time"

	"taskledger/events"
)

// Store is what a node needs of etcd; etcdstore implements it, and engine/storetest holds any implementation to it.
type Store interface {
	Journal
	Sessions
	Members
	Owners
	Mailbox
	Sweeper
	Snapshots
	Trimmer
	Repairer
	Housekeeping
	Cluster() Cluster
}

// Cluster is what was fixed when the cluster was created.
type Cluster struct {
	ID     string // random
	Shards int
	Key    []byte // 32 bytes; authenticates messages between members
}

var (
	// ErrFenced reports that the shard has another owner or the session has ended. Nothing was written, now or later.
	ErrFenced = errors.New("shard has another owner or the session has ended")
	// ErrMoved reports that the fences are gone and the journal was trimmed past the entry: nobody can tell whether it
	// was written. The shard is lost to this writer.
	ErrMoved = errors.New("shard has moved on")
	// ErrAlien reports that the place of the next entry holds something else, although the shard still is the caller's alone to
	// write. Nothing was written, and nothing can be before that is gone.
	ErrAlien = errors.New("the place of the next entry is taken")
	// ErrRefused reports that the store refuses the write although the caller is the owner (too large, no
	// permission). Nothing was written, and sending it again would not help.
	ErrRefused = errors.New("write refused")
	// ErrSessionEnded reports that the lease or the node key of a session is gone for ever.
	ErrSessionEnded = errors.New("session has ended")
	// ErrTrimmed reports that what was asked for is no longer held: an entry, or a part of a snapshot.
	ErrTrimmed = errors.New("entry was trimmed")
	// ErrFull reports that the store takes no more writes until space is made. Whether the write was made is unknown.
	ErrFull = errors.New("store is full")
)

// Head names the entry after which a writer appends: the last one it has folded. Both fields are 0 before the first.
type Head struct {
	Number   uint64
	Revision int64 // etcd revision of its write
}

// Record is a stored entry.
type Record struct {
	Head
	Data []byte // immutable, owned by the receiver
}

// Journal appends to and reads the journals of the shards.
type Journal interface {
	// Append writes entry after.Number+1 of the shard, or nothing. It resolves unknown outcomes itself, by sending the
	// identical transaction until the answer is definite, and returns the revision of the entry, or an error that wraps
	// ErrFenced, ErrMoved, ErrAlien or ErrRefused; any other error means that ctx ended while the outcome was unknown, and the
	// entry may still appear later. The entry's bytes must never be changed.
	Append(ctx context.Context, o Ownership, after Head, entry []byte) (int64, error)
	// Read yields the entries from number from up to the last one at the time of the call, in order and linearizably,
	// in bounded pages. A missing entry yields ErrTrimmed. It ends with the first error.
	Read(ctx context.Context, shard int, from uint64) iter.Seq2[Record, error]
	// Entry reads one entry linearizably; ErrTrimmed when it is gone, or was never written.
	Entry(ctx context.Context, shard int, number uint64) (Record, error)
	// Follow is Read that goes on with every later entry until ctx ends. It survives lost connections.
	Follow(ctx context.Context, shard int, from uint64) iter.Seq2[Record, error]
}

// Session is a node's presence: a lease, and the key node/<ID> bound to it. IDs are never used again.
type Session struct {
	ID       string
	Lease    int64
	Revision int64 // create revision of the node key
}

// NodeInfo is the value of a node key, and what a member tells of itself.
type NodeInfo struct {
	ID        string   `json:"id"`
	Name      string   `json:"name"`
	Version   string   `json:"version"`
	Address   string   `json:"address,omitempty"`
	Behaviors []string `json:"behaviors"` // that it runs
	Types     string   `json:"types"`     // hash of their parameter and result types
	Slots     int      `json:"slots"`
	// Limits is how many attempts at once it makes of the behaviors that are not limited by Slots alone; 0: none.
	Limits   map[string]int `json:"limits,omitempty"`
	Owner    bool           `json:"owner"` // takes shards
	Draining bool           `json:"draining"`
	Joined   int64          `json:"joined_ms"` // its wall clock when it joined, milliseconds
	Load     []byte         `json:"-"`         // its last load message, kept here while it has no bus
	Revision int64          `json:"-"`         // create revision of the node key
	Modified int64          `json:"-"`         // mod revision of the node key
	// ClockAhead is how far its wall clock is ahead of the other nodes', or, negative, behind, in milliseconds; 0 = a second
	// at most, or not known. It is filled by Client.Nodes, from what the node tells.
	ClockAhead int64 `json:"clock_ahead_ms,omitempty"`
}

// Sessions makes, renews and ends presences.
type Sessions interface {
	// Join grants a lease of at least ttl and creates the node key under a new id.
	Join(ctx context.Context, info NodeInfo, ttl time.Duration) (Session, error)
	// Renew extends the lease by one request. It wraps ErrSessionEnded when the lease is gone; any other error leaves
	// the outcome unknown. ctx bounds the one request; the next call goes to the next etcd member.
	Renew(ctx context.Context, s Session) error
	// Update replaces the value of the node key. It calls info for the value after it has read the key, and again whenever
	// the key has changed meanwhile: the last of concurrent updates saw what all of them are about. It also calls info for
	// every copy of a request that it sends again, so that no value is written much later than it was asked for. It wraps
	// ErrSessionEnded when the key is gone or has lost its lease.
	Update(ctx context.Context, s Session, info func() NodeInfo) error
	// Leave revokes the lease, which deletes the node key. A session that has ended is no error.
	Leave(ctx context.Context, s Session) error
}

// Membership is who is present and who owns which shard, at one revision.
type Membership struct {
	Revision int64
	Nodes    map[string]NodeInfo // by id; a node key without a lease is no session's
	Owners   map[int]Owner       // by shard of the cluster; shards never owned are missing
}

// Owner is the value of an owner key.
type Owner struct {
	Node     string // session id; the session may have ended. "" = the key cannot be read
	Revision int64  // mod revision of the owner key: the epoch
}

// Members reads the membership.
type Members interface {
	// ReadMembers reads linearizably, all at one revision.
	ReadMembers(ctx context.Context) (Membership, error)
	// WatchMembers yields the membership at the time of the call and after every change, coalesced, until ctx ends or
	// the consumer stops. After any watch error it reads again, linearizably. Values are new maps each time. It yields
	// errors while etcd cannot be reached, and goes on.
	WatchMembers(ctx context.Context) iter.Seq2[Membership, error]
}

// Ownership is the right to append to a shard: the fences that every append compares.
type Ownership struct {
	Shard    int
	Revision int64 // of the owner key that names the session
	Session  Session
}

// Owners changes who owns a shard. Both methods resolve unknown outcomes themselves.
type Owners interface {
	// Take makes the session the owner of a shard whose owner key was seen as given (zero: never owned). One that cannot be
	// read is replaced by its revision alone: whoever it named before is fenced by it. It wraps
	// ErrFenced when the owner key has changed, the old owner's node key is there and has a lease, or the session has ended.
	Take(ctx context.Context, s Session, shard int, seen Owner) (Ownership, error)
	// HandOver gives the shard to the node with the given session id. It wraps ErrFenced when the shard is not o's any
	// more or the target has no node key with a lease; in the latter case the shard stays o's.
	HandOver(ctx context.Context, o Ownership, target string) error
}

// Letter is a batch that came by way of the store.
type Letter struct {
	Shard    int
	Sender   string
	Lane     uint8
	Revision int64 // mod revision of its mailbox key
	Batch    []byte
}

// LetterAnswer is the answer to a letter.
type LetterAnswer struct {
	Shard  int
	Lane   uint8
	Answer []byte
}

// Mailbox carries numbered batches and their answers when the bus cannot. Repetition is harmless: batches are numbered.
type Mailbox interface {
	// Post puts the batch under the one key of its shard, sender and lane, replacing what is there. A letter that is
	// there already is yielded again: its answer may have been lost on another way. The number after the last shard is a
	// box that every node reads. It wraps ErrRefused for any other that is no shard. It wraps ErrFull while the store is full,
	// without waiting for room, and ErrRefused, too, when nothing of the batch was sent.
	Post(ctx context.Context, shard int, sender string, lane uint8, batch []byte) error
	// Letters yields the waiting letters of a shard and every later one until ctx ends. It survives lost connections.
	Letters(ctx context.Context, shard int) iter.Seq2[Letter, error]
	// Answer removes the letter and puts its answer, or does nothing when the letter has been replaced.
	Answer(ctx context.Context, l Letter, answer []byte) error
	// AnswerAs is Answer as the owner of the shard: it wraps ErrFenced, and changes nothing, when that is over.
	AnswerAs(ctx context.Context, o Ownership, l Letter, answer []byte) error
	// Answers yields the waiting answers to a sender and every later one until ctx ends; what the consumer has seen is
	// removed from the store.
	Answers(ctx context.Context, sender string) iter.Seq2[LetterAnswer, error]
}

// Sweeper removes mail that nobody reads any more.
type Sweeper interface {
	// SweepMail removes the letters and answers of all senders that were last written at a revision up to before, page by
	// page, and returns how many, and the store's revision when it began. What is written again meanwhile stays; 0 removes
	// nothing.
	SweepMail(ctx context.Context, before int64) (swept int, revision int64, err error)
	// RemoveMail removes the letters of a sender and the answers to it. The sender must have ended for good, and have posted to
	// no other boxes than are named; none = to any. An error means that some mail may be left.
	RemoveMail(ctx context.Context, sender string, boxes ...int) error
}

// Snapshot names a stored state of a shard: the fold of its journal up to Entry, taken by the owner of Epoch.
type Snapshot struct {
	Entry uint64      `json:"entry"`
	Epoch int64       `json:"epoch"` // etcd revision of the ownership that it was taken under
	Parts int         `json:"parts"`
	Bytes int64       `json:"bytes"` // of all parts
	Hash  events.Hash `json:"hash"`  // SHA-256 of the SHA-256 sums of the parts, in order
}

// SnapshotPointer names the snapshots of a shard that are kept, newest first, at most two.
type SnapshotPointer struct {
	Revision int64 // mod revision of the pointer; 0 = no snapshot was ever taken
	Kept     []Snapshot
}

// Snapshots keeps states of the shards, two of each. Every write is fenced by the ownership and resolves unknown outcomes
// itself.
type Snapshots interface {
	// PutPart stores part number part of the snapshot of an entry; parts are put in order, from 0. Only Publish makes them
	// count. The bytes must never be changed. It wraps ErrFenced, ErrRefused, also when this ownership stored the part with
	// other bytes, or, when ctx ended while the store was full, ErrFull.
	PutPart(ctx context.Context, o Ownership, entry uint64, part int, data []byte) error
	// Publish makes s the newest snapshot and seen's newest the older one, and removes the parts of all others. It wraps
	// ErrFenced when the ownership is gone or the pointer is not the one seen, and ErrRefused when s is not newer than seen's
	// newest, not of the ownership, or its parts were removed by another Publish. A caller may leave a damaged snapshot out
	// of seen.
	Publish(ctx context.Context, o Ownership, seen SnapshotPointer, s Snapshot) (SnapshotPointer, error)
	// Pointer reads the pointer linearizably. It wraps events.ErrDamaged, and returns the revision alone, when its value
	// makes no sense.
	Pointer(ctx context.Context, shard int) (SnapshotPointer, error)
	// Parts yields the parts in order, unchecked. A missing one yields ErrTrimmed and ends it.
	Parts(ctx context.Context, shard int, s Snapshot) iter.Seq2[[]byte, error]
}

// Trimmer removes entries that snapshots cover.
type Trimmer interface {
	// First returns the number of the first entry that the journal holds; 0 = none.
	First(ctx context.Context, shard int) (uint64, error)
	// Trim removes the entries from first up to, but not, until, in pieces, each fenced by the ownership and compared with
	// the pointer p. It wraps ErrRefused unless p keeps two snapshots of which the older covers until, or when the journal
	// holds an entry before first, and ErrFenced when the ownership is gone or the pointer has changed. What an error leaves
	// is trimmed by the next call.
	Trim(ctx context.Context, o Ownership, p SnapshotPointer, first, until uint64) error
}

// StoredKey is a key as it is stored, whatever it holds.
type StoredKey struct {
	Key      string
	Entry    uint64 // of a journal; 0 = no entry can have that key
	Revision int64  // mod revision
	Replaced bool   // it was written more than once since it is there
	Data     []byte
}

// Repairer finds what does not belong where it is, and removes it.
type Repairer interface {
	// Behind yields what the journal of a shard holds behind the key of an entry, in the order of the keys.
	Behind(ctx context.Context, shard int, entry uint64) iter.Seq2[StoredKey, error]
	// Foreign yields a key, and no data, of each shard that keys are of and the cluster does not have.
	Foreign(ctx context.Context) iter.Seq2[StoredKey, error]
	// Leaseless yields the node keys without a lease, which are no session's.
	Leaseless(ctx context.Context) iter.Seq2[StoredKey, error]
	// Remove removes the key unless it was written since; that it is gone is no error.
	Remove(ctx context.Context, k StoredKey) error
}

// Usage is how full the store is.
type Usage struct {
	InUse    int64 `json:"in_use"` // bytes that hold something, as of the last writes; the worst of all members
	Size     int64 `json:"size"`   // bytes of the file, which never shrinks by itself; the worst of all members
	Quota    int64 `json:"quota"`  // of the file, above which the store takes no writes
	Revision int64 `json:"revision"`
	Full     bool  `json:"full"` // the alarm is raised: the store takes no writes that need space
}

// Housekeeping keeps the store from filling up.
type Housekeeping interface {
	Usage(ctx context.Context) (Usage, error)
	// Compact forgets replaced and removed values of before the revision. One that was compacted already is no error. It
	// wraps ErrRefused when the store must compact itself because the caller may not.
	Compact(ctx context.Context, revision int64) error
	// Defragment gives unused bytes of the file back, and then ends an alarm. Writes wait meanwhile, for seconds. It wraps
	// ErrRefused where the store is not the process's own.
	Defragment(ctx context.Context) error
}

// ArchiveHead is the end of a shard's archive. The zero value is the end of an empty one.
type ArchiveHead struct {
	Entry    uint64 // the last one archived
	Sequence uint64 // where the archive keeps the segment that ends with it
}

// MaxSegmentBytes bounds the entries packed into one segment of the archive, so that it fits a message of 1 MiB.
const MaxSegmentBytes = 896 << 10

// ErrConflict reports that a shard's archive does not continue as its writer supposed.
var ErrConflict = errors.New("archive continues otherwise")

// Archiver appends entries to the archive, where they stay when the journal is trimmed; natsbus implements it.
type Archiver interface {
	// Head reads the end of a shard's archive.
	Head(ctx context.Context, shard int) (ArchiveHead, error)
	// Archive appends consecutive entries as one segment, at most MaxSegmentBytes unless it is a single entry, and returns
	// when they are acknowledged as durable. Sending them again, after an error of unknown outcome, stores them once. It
	// wraps ErrConflict when something else follows after.
	Archive(ctx context.Context, shard int, after ArchiveHead, entries []Record) (ArchiveHead, error)
	// Confirm reads the segment at head back and compares it with entries. It wraps ErrConflict when they differ.
	Confirm(ctx context.Context, shard int, head ArchiveHead, entries []Record) error
	// Settled is how long after its acknowledgement a segment may count as durable.
	Settled() time.Duration
}

// ErrNoArchive reports that no archive is to be seen: none was ever begun, or what would keep it is not up.
var ErrNoArchive = errors.New("there is no archive")

// ArchiveReader reads what was archived; natsbus implements it. Its methods wrap ErrNoArchive, or yield nothing, where
// nothing is.
type ArchiveReader interface {
	// ReadArchive yields the archived entries from number from up to the last one at the time of the call, in order, with
	// the revisions they had in the journal. An entry before the first one archived yields ErrTrimmed.
	ReadArchive(ctx context.Context, shard int, from uint64) iter.Seq2[Record, error]
	// FindArchived yields, newest first, the archived entries that may hold events of the task.
	FindArchived(ctx context.Context, shard int, task events.TaskID) iter.Seq2[Record, error]
}

// Archive is both.
type Archive interface {
	Archiver
	ArchiveReader
}

// Message is what came over the bus.
type Message struct {
	Subject      string
	Reply        string // where an answer is awaited; "" = nowhere
	Data         []byte // owned by the receiver
	NoResponders bool   // nobody listens on the subject that a message with this Reply was sent to
}

// Bus carries hints and requests, at most once and unordered; natsbus implements it. Subjects are relative to the
// cluster. Messages on every subject but completed.> are authenticated with the cluster key: forged or garbled ones
// never reach a handler. Methods may be called concurrently.
type Bus interface {
	// Publish sends without waiting and does not keep data. An error means that the message was not sent, nil proves
	// nothing.
	Publish(subject, reply string, data []byte) error
	// Subscribe calls h for every message on subject, one at a time, until ctx ends; of the subscribers that share a
	// queue name, one gets each message. It returns when the subscription is made; it does not wait for
	// a connection: without one it is made as soon as there is one, and Notify tells true after that.
	Subscribe(ctx context.Context, subject, queue string, h func(Message)) error
	// Notify calls h with whether the bus is connected: at once, at each change, and with true again whenever messages
	// may have been missed. Calls are made one at a time, until ctx ends.
	Notify(ctx context.Context, h func(connected bool)) error
}
