// Package stores is the front of task stores: what is asked of the items of a store, with its limits, decisions and
// answers; the client that asks; and what an owner does for them beside its tasks.
//
// An update and a claim are commands, decided within an entry. The others are questions, which an owner answers without
// one; Await also registers its sender, in memory alone. Whoever waits for an item parks at its client, and registers with the owner of the store.
package stores
