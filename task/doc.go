// Package task declares everything that the implementer of a behavior sees: the behavior itself, the plan of a
// submit, the attempt that a node makes and its outcome; and everything that callers get: a Task, pages and counts
// of those that a Filter selects, Settings, and errors. Package engine runs behaviors. Package behaviors implements
// Behavior for functions of any parameter and result types; a program that uses it needs this package for its
// policies, the options of its submits, and its errors.
//
// # The life of a task
//
// A submit names a behavior and brings parameters, as JSON text. Plan says which task they are about and when it
// may start. If there is no task with that id, one is created, and the Policy of the behavior is recorded with it.
// If there is one, the submit joins it; a behavior that is a Merger can combine the parameters of both.
//
// When the task is due and a node has a free slot, an attempt starts: the node calls Run. The Outcome says what
// comes next:
//
//   - a success, with a result. The task has ended, or runs again at the time that Wait or Next says.
//   - a failure, with Err. If Wait or Next names a time, the task is retried then, as part of the same run; otherwise the failure
//     is final.
//   - a Snooze: no outcome yet. The task is run again after that time, and no attempt of the policy is used up.
//   - a Release: the attempt is given back, and the task is ready again for any node.
//
// So it is the implementation that decides about a retry. It finds the failures so far, and the Policy with its
// back-off, in the Attempt. The engine itself retries by the Policy only attempts that panic and those that it gives
// up because they do not return, unless the implementation is a Failer, and those that could not read their
// parameters while nodes disagree about the types.
//
// Where Policy.Every is set, the owner of the shard lets another run follow the end of each run, whatever it was,
// until somebody cancels or deletes the task.
//
// An attempt whose node dies has no outcome: it is recorded as lost and made again, until Policy.MaxLost attempts of
// a run are lost: at once after the first loss, later and later after further ones. One that is cut off because its
// node stops in order is recorded as released, too, and made again elsewhere: when its function has returned, or ten
// seconds after its context has ended.
//
// # What an implementation owes
//
// Plan and Merge run in the process that submits, or, for a submit by name, on a node that has the behavior, where
// they have a second to return. They depend on their arguments alone and have no effects. Run makes one attempt.
// All three can be called concurrently.
//
// The context of an attempt ends at its time-out, at the deadline of its run, when the task is cancelled, when the node
// stops, and when the node loses its session. Run should then return soon. After ten seconds the attempt is recorded as
// failed, and keeps its slot until Run returns. If the session is lost, or the node stops and the ten seconds are over,
// another node may make the next attempt before this one has returned.
//
// An attempt that is recorded as failed, lost or released may have had effects outside. They must be idempotent by
// the id of the task, or be guarded by Attempt.Token: it grows with every attempt of a task, so that an outside
// system that remembers the largest one can refuse those of earlier attempts.
//
// # Errors
//
// A caller that submits learns by the error whether anything was accepted. After *LimitError, *OverloadError,
// ErrUnknownBehavior, *store.InvalidError and store.ErrUnavailable nothing was; after ErrUnknown nobody knows, and
// a submit of the same id, or key, finds out. A command that the state of a task does not allow ends with a
// *StateError. A task that failed is an *Error, the same for every caller in every process.
package task
