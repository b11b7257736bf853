// Package ledger reads what happened in a cluster: the history of a task, a task as it was at any time, the events of
// all shards in the order of their commits, past and to come. It verifies journals, snapshots and archive, and makes
// exports and checkpoints by which others can verify them without the cluster. It changes nothing.
//
// engine.Client.Ledger returns the ledger of a client's cluster. New makes one of narrow ports, for a program that
// reads without a client.
//
// # Where events are
//
// The owner of a shard appends what happens to the shard's journal, as numbered entries of one or more events. Every
// entry holds the chain hash of the entry before. The first entries of a journal may have been moved to the archive,
// after snapshots of the state that they lead to; a Reader reads both as one journal, and all methods of Ledger do.
// Without an archive, and in a cluster that drops old entries, a read that needs them fails with store.ErrTrimmed.
//
// An event has a position, the number of its entry and its index there, and a sequence number within the life of its
// task: 1, 2, 3 ... without gaps. A life is a task from its creation to its deletion. Each event names the position of
// the one before, so that the history of a task is read from its last event back, however long the journal is.
//
// # One task
//
// History yields the events of the present life of a task, or of its last one. HistoryPage returns some of them, newest
// or oldest first, with the cursor of the next page: what is to be shown of a long life. StateAt and StateAfter fold
// the events up to a time or an event, and return the task as it was then, also if it is long no longer kept.
//
// # All tasks
//
// Replay yields all events that were committed before the call, in the order in which the store committed their
// entries. Follow yields them as well, and then goes on with those that are committed later. A service that keeps a
// state of its own, a projection, uses Follow:
//
//	for batch, err := range node.Ledger().Follow(ctx, stored.Cursor) {
//		if err != nil {
//			return err // call Follow again, with the cursor of the last batch that was stored
//		}
//		// in one transaction: fold batch.Events, store batch.Cursor
//	}
//
// Each event then counts exactly once, whatever stops the service in between. Events bear the times of the owners'
// clocks, which never fall within a shard.
//
// # Proof
//
// Verify recomputes everything: the hashes and the chain of each shard, the legality of every transition, and that the
// snapshots, the archive and the state that the owner serves equal the fold of the entries. It reports a Damage with
// the entry at which it stands; an error means that it could not check.
//
// A chain that was forged and recomputed as a whole is sound in itself. It differs from a Checkpoint, the chain hashes
// at one time, that somebody kept elsewhere: VerifyOptions.Against compares. ExportTask and ExportShard write files
// that VerifyExport checks without the cluster, also against checkpoints. The export of a task shows of other tasks
// digests only.
//
// # Exports
//
// An export is a file of JSON objects, one a line, that VerifyExport checks without a cluster:
//
//	{"format":"taskledger export","version":3,"cluster":ID,"shard":N,"task":ID,"from":N,"prev":HASH}
//	{"entry":BYTES}
//	{"head":BYTES,"digests":BYTES,
//	 "origins":[{"index":N,"header":BYTES,"answers":HASH}],"shown":[{"index":N,"header":BYTES,"payload":BYTES}]}
//	{"link":HASH,"digests":BYTES}
//	{"end":N,"hash":HASH,"checkpoint":NOTE}
//
// The first line says what follows: consecutive entries of the shard from number from on, whose chain continues prev.
// An export of a shard has entries in their stored form. An export of a task has excerpts of the entries with events of
// the task, with the origins that caused them and the digests of everything else in the entry, and links for the
// entries between them: the hash of the head, and the digests, 32 bytes each. The last line names the last entry and
// its chain hash, and holds the signed checkpoint of it, if there is one. Each line must be exactly as encoding/json
// writes it, without blanks. BYTES are base64, HASHes hexadecimal; events.Builder describes heads and headers.
//
// # Errors
//
//   - task.ErrNotFound: there is no such task, or there was none at that time.
//   - store.ErrTrimmed: the entries were there and have been removed.
//   - store.ErrUnavailable: it cannot be read now; the store or the archive does not answer, or the ledger's client has none.
//   - events.ErrDamaged: a stored entry is corrupt; Verify names shard, entry and kind.
//   - *store.InvalidError and *task.LimitError: the arguments are wrong.
package ledger
