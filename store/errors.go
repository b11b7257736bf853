package store

import (
	"errors"

	"taskledger/events"
)

var (
	// ErrFenced reports that the shard has another owner or the session has ended. Nothing was written, now or later.
	ErrFenced = errors.New("shard has another owner or the session has ended")
	// ErrMoved reports that the fence is gone and the journal was trimmed past the entry, so that it cannot be
	// known whether it was written. The shard is lost to this writer.
	ErrMoved = errors.New("shard has moved on")
	// ErrAlien reports that something else stands where the next entry belongs, although only the caller may write
	// there. Nothing was written, and nothing can be written before it is removed.
	ErrAlien = errors.New("the place of the next entry is taken")
	// ErrRefused reports that the store refuses the write although the caller is the owner (too large, no
	// permission). Nothing was written, and sending it again would not help.
	ErrRefused = errors.New("write refused")
	// ErrTooLarge is wrapped beside ErrRefused by a write that is larger than the store takes.
	ErrTooLarge = errors.New("write is larger than the store takes")
	// ErrSessionEnded reports that the lease or the node key of a session is gone. It never comes back.
	ErrSessionEnded = errors.New("session has ended")
	// ErrTrimmed reports that an entry, or a part of a snapshot, is no longer there.
	ErrTrimmed = errors.New("entry was trimmed")
	// ErrFull reports that the store takes no more writes until space is made. Whether the write was made is unknown.
	ErrFull = errors.New("store is full")
	// ErrBroken reports that the store writes nothing any more, since nobody knows what became of a write. Only a process
	// that opens the store again finds out.
	ErrBroken = errors.New("store writes nothing any more: open it again")
	// ErrOutdated reports that the journals or snapshots may hold what the program cannot read.
	ErrOutdated = errors.New("this program is too old for the cluster: upgrade it")
	// ErrUnfinished reports a store into which a cluster was being copied.
	ErrUnfinished = errors.New("not finished: run copy again")
	// ErrUnavailable reports that the cluster could not be asked in time. Nothing was accepted.
	ErrUnavailable = errors.New("cluster unavailable")
)

// InvalidError reports a request or a configuration that breaks a rule. Nothing was accepted.
type InvalidError = events.InvalidError
