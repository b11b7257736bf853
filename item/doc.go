// Package item has the requests to a task store and its answers, their limits and their problems.
//
// A store is a set of items in groups. One update removes, replaces and adds items, all or nothing, if the items
// that it depends on are there; a claim takes one available item of a group for a time. Ids of a store count 1, 2,
// 3 ... and are never used twice: whatever changes an item gives it a new id, so whoever was late finds the old one
// gone. It follows the Task Store document.
//
// A store is made by its first use, and lives in one shard, that of the affinity `store:NAME`.
package item
