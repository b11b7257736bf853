// Package taskstore is a task store for programs: a set of items in groups, of which many are changed at once, all or none, and of which a
// worker claims one for a time, to lose it when it is late.
//
// Open makes a Store of what holds items: an engine's Client or Node. Package taskstore/client makes the same of a server's address. A Worker
// claims items, keeps them while its handler works, and finishes with one update.
//
//	s, err := taskstore.Open(client, "crawl", taskstore.Options{})
//	...
//	made, err := s.Update(ctx, &taskstore.Update{Adds: []taskstore.Add{{Group: "fetch", Data: url}}})
//
// Whatever changes an item gives it a new id. An id that is gone never comes back, so who was late is refused by it.
package taskstore

import (
	"taskledger/item"
	"taskledger/store"
	"taskledger/task"
)

// What a store is asked, and what it answers; package item says the rules.
type (
	// Item is an item as it is now, or was when it was answered.
	Item = item.Item
	// When is a point in time: above 0 in milliseconds since 1970, else that many milliseconds from now on; 0 = now.
	When = item.When
	// Add asks for a new item.
	Add = item.Add
	// Change asks for a new version of an item.
	Change = item.Change
	// Update asks for changes of many items: all of them, or none.
	Update = item.Update
	// Claim asks for one available item of a group.
	Claim = item.Claim
	// Page asks for items of a group.
	Page = item.Page
	// Problem is one of the reasons of a ConflictError.
	Problem = item.Problem
)

// The errors of a store, by errors.As and errors.Is.
type (
	// ConflictError reports that the items do not allow what was asked, with every problem. Nothing was changed.
	ConflictError = item.ConflictError
	// InvalidError reports what breaks a rule, by field and limit. Nothing was changed.
	InvalidError = store.InvalidError
	// LimitError reports what is over a limit. Nothing was changed.
	LimitError = task.LimitError
	// OverloadError reports that there is no room at the moment. Nothing was changed.
	OverloadError = task.OverloadError
)

// What else a call may return.
var (
	// ErrUnknown reports that an update or a claim was sent and not answered: it may have been applied or not.
	ErrUnknown = task.ErrUnknown
	// ErrOtherRequest reports that the key of a call stands for another one. Nothing was changed.
	ErrOtherRequest = task.ErrOtherRequest
	// ErrUnavailable reports that nobody could be asked. Nothing was changed.
	ErrUnavailable = store.ErrUnavailable
	// ErrClosed reports that the client or node below has stopped.
	ErrClosed = task.ErrClosed
)
