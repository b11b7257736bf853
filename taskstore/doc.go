// Package taskstore changes the items of a task store, many in one update or none, and claims items for a time.
//
// An item has an id, a group, data, a time from which it is available, and an owner. Every change gives the item a
// new id; the old id is gone and never used again. So if an id is there, nothing has happened to its item, and a
// change by an old id is refused. Until an item is available it belongs to its owner, and no other client may
// change or remove it. From then on any client may.
//
// A [Store] is one store of a cluster, reached through a [Backend]: the Stores of an engine.Client in this process,
// or package taskstore/client over HTTP. Its first use creates it. It lives in one shard. A [Worker] claims items
// of a group and gives each to a function.
//
//	s, err := taskstore.Open(node.Stores(), "crawl", taskstore.Options{})
//	_, err = s.Update(ctx, taskstore.Update{Adds: []taskstore.Add{{Group: "fetch", Data: []byte("https://example.com/")}}})
//	it, err := s.Claim(ctx, taskstore.Claim{Group: "fetch", Duration: 30 * time.Second})
//	_, err = s.Update(ctx, taskstore.Update{Deletes: []int64{it.ID}, Adds: found})
//
// # Errors
//
// A *[ConflictError] says that the items do not allow the call. It has every reason, each with a [ProblemKind]. An
// *[InvalidError] names a field of the call that breaks a rule, and the limit. After both, and after
// [ErrOtherRequest], nothing was changed.
//
// Lost connections, [ErrUnavailable], *[OverloadError] and [ErrUnknown] are no answer: the call is repeated until
// there is one or its context ends. Each update and claim has a key of its own, so a repeated call is done once. If
// the context ends without an answer, the error wraps its cause. It also wraps [ErrUnknown] if the call may have
// been done, or may yet be; otherwise nothing was done. A call that was repeated for so long that the store may
// have forgotten its key ends with [ErrUnknown] and [ErrForgotten], and is not done again.
//
// # Limits
//
// One update takes 1,000 ids and adds together, and 256 KiB: data, groups of adds, and 192 B for each id and add;
// larger ones are refused. Ids are 1 to 2^53. A claim lasts 1 ms to 24 h. A store remembers the last 64 keys of a
// client, for an hour. So a client has at most 64 updates and claims under way, of which at most 32 are claims;
// further calls wait for their turn. All stores of one name that a process opens without a client of their own
// share one client.
package taskstore

import (
	"taskledger/item"
	"taskledger/store"
	"taskledger/task"
)

// What a store is asked and answers, as package item has it, so that programs need not import that.
type (
	// Item is an item as it was when it was answered.
	Item = item.Item
	// When is a time from which an item is available: above 0 in milliseconds since 1970, else so many milliseconds
	// after now; 0 = now.
	When = item.When
	// Add asks for a new item.
	Add = item.Add
	// Change asks for a change of an item, which gets a new id.
	Change = item.Change
	// Update asks for changes of many items: all of them, or none.
	Update = item.Update
	// Claim asks for an available item of a group.
	Claim = item.Claim
	// Group counts the items of a group.
	Group = item.Group
	// ConflictError says that the items do not allow what was asked, with every reason. Nothing was changed.
	ConflictError = item.ConflictError
	// Problem is one of the reasons of a ConflictError.
	Problem = item.Problem
	// ProblemKind tells reasons apart.
	ProblemKind = item.Kind
	// InvalidError says what is wrong with which field of what was asked. Nothing was changed.
	InvalidError = store.InvalidError
	// OverloadError says that there is no room now, and when to ask again. Nothing was changed.
	OverloadError = task.OverloadError
)

// The kinds of problems.
const (
	NotThere   = item.NotThere   // the item was changed or removed, or there never was one
	Held       = item.Held       // another client has the item until its time comes
	OtherGroup = item.OtherGroup // the item is not of the group that the change names
)

// The errors that calls may return, wrapped.
var (
	// ErrUnknown says that an update or a claim was sent and not answered: it may have been done, or become done.
	ErrUnknown = task.ErrUnknown
	// ErrForgotten comes with ErrUnknown when a call was repeated for so long that the store may have forgotten its
	// key.
	ErrForgotten = item.ErrForgotten
	// ErrOtherRequest says that the key stands for another call. Nothing was changed.
	ErrOtherRequest = task.ErrOtherRequest
	// ErrUnavailable says that nobody answers.
	ErrUnavailable = store.ErrUnavailable
	// ErrClosed says that the client in this process has ended.
	ErrClosed = task.ErrClosed
)
