// Package taskstore is a task store: change many tasks at once or none, claim one for a time, and lose it when you are late.
//
// A task of a store is an item: it has an id, a group, data, and a time from which on it is available. One Update adds, changes and deletes tasks,
// all or nothing, if the tasks that it depends on are there. A Claim takes one of the oldest available tasks of a group; until the claim ends nobody
// else can change it. Every change gives a task a new id, so whoever is late finds the old one gone. The shape is that of the Task Store document;
// the tasks of behaviors, which the cluster runs, are something else: see package engine.
//
// A Store is used by any number of goroutines. All methods return these errors, besides that of a context:
//
//   - *item.ConflictError: the tasks do not allow it; it names all problems, and nothing was changed
//   - *events.InvalidError: the request breaks a rule; it names the field and the limit, and nothing was changed
//   - task.ErrOtherRequest: the key stands for another request
//   - store.ErrUnavailable: the owner of the store cannot be asked; nothing was changed
//   - task.ErrUnknown: it may have been carried out or not; the same request with the same key finds out
//   - *task.OverloadError: the shard has no room; try again after its time
package taskstore
