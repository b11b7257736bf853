// Package stores implements the front of task stores: commands and questions about the items of a store, with their
// limits, decisions and answers; the client that asks; and the extension of owners.
//
// An update and a claim are commands, decided within an entry. The others are questions, which an owner answers
// without one; Await also registers its sender, in memory alone. A claim that waits for an item parks at its
// client, which registers with the owner of the store.
package stores
