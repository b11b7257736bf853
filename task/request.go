package task

import (
	"time"

	"taskledger/events"
)

// Request is a submit of many that are made together: see engine.Client.SubmitMany.
type Request struct {
	Behavior Behavior // plans the task
	Name     string   // id of a behavior, instead of Behavior: a node that has its code plans the task
	Params   []byte   // JSON text; nil = none
	SubmitOptions
}

// ManyOptions are about requests that are made together.
type ManyOptions struct {
	// RequestKey, up to 239 bytes of UTF-8, makes a repetition of all the requests together the same request, as
	// SubmitOptions.RequestKey does for one. A repetition has as many requests in the same order; any other use of
	// the key, also for a single request, is refused with ErrOtherRequest. "" = no key. The tasks that neither ID nor
	// the behavior's rule names are "id/0", "id/1" ... in order, where id derives from the principal, the behavior of
	// the first of them and the key: they are of one affinity. With a key no request has one of its own, none names
	// the task of another one, and AllValid holds. The key is known by the first of these tasks: where that was
	// refused for lack of room, or deleted, other requests of the key are told apart only where they meet the tasks
	// of this one.
	RequestKey string
	// AllValid submits nothing if one of the requests breaks a rule or a limit, or its behavior refuses it or is not
	// to be found: that one has its own error, and the others one that wraps ErrNoneSubmitted. What the owner of a
	// shard refuses, for lack of room or because of the state of a task, is refused alone all the same.
	AllValid bool
}

// SubmitOptions override what the behavior of a request plans; a zero field leaves it as planned.
type SubmitOptions struct {
	// ID names the task: 1 to 128 bytes of [A-Za-z0-9._:-], and at most one slash. What stands before the slash is its
	// affinity: all tasks of one affinity are in one shard, so leave it out where they need not be together. Submits of
	// one id share one task. "" = as the behavior plans it.
	ID        events.TaskID
	NotBefore time.Time // zero = as the behavior plans it
	// Delay, instead of NotBefore, is so long after the submit, up to ten years, whatever the clock of the submitter
	// shows; 0 or less = none.
	Delay    time.Duration
	Priority int64 // 0 to 9,223,371, higher first among the ready tasks of the shards of a node; 0 = as planned
	// MaxAttempts, Timeout and Retain take the place of those in the policy of the behavior, for this task; 0 = the
	// policy's. As with the rest of the policy, those of the last submit that shares a task count.
	MaxAttempts int           // failed attempts of a run before its failure is final, up to 1,000,000
	Timeout     time.Duration // longest time of an attempt, up to ten years
	Retain      time.Duration // how long the task is kept after SUCCESS, up to ten years
	// Tags, up to 10 of 1 to 64 letters, digits and . _ - : / = + @, are for lists: task.Filter.Tag finds the tasks of
	// one. A submit that begins a run of a task that is there gives it these instead, unless there are none; one that
	// joins a run changes none.
	Tags []string
	// Deadline, up to ten years ahead and not before the task may start, is when the run that the submit
	// begins fails unless it has ended: with the code "deadline", while it waits as while an attempt runs, whose context
	// then ends, within two seconds where no bus tells its node at once. A failed attempt whose next one would come
	// later is the last, with its own error. An attempt that ends before the owner of the shard sees that the time has
	// come counts, also where that was away for a while.
	//
	// The deadline is that of one run. Further runs, as by a retry, a repetition or parameters that are merged into a
	// run that goes on, have none, and a submit that joins a run changes nothing about it. A further run of a task that
	// has ended, which has not begun by its deadline, is cancelled, and the outcome of the run before stays. The zero
	// time is none.
	Deadline time.Time
	// RequestKey, up to 239 bytes of UTF-8, makes a repeated submit the same request: what a request has made or
	// changed of a task, it neither makes nor changes again, and its engine.Future says Repeated. A key that was used
	// with other parameters, which are compared byte by byte, or another NotBefore, Delay, Priority, MaxAttempts,
	// Timeout, Retain, Tags or Deadline is refused with ErrOtherRequest: so a repetition gives Delay, or the same
	// NotBefore. "" = no key.
	//
	// If neither ID nor the behavior's rule names the task, its id derives from the principal, which is the client's
	// name or that of engine.WithCaller, the behavior and the key: all who repeat a request of one principal, at once
	// or after an answer was lost, meet in one task. Otherwise the key counts within the task.
	//
	// A repetition gets the run that the first one was promised, whatever others have made of the task since.
	//
	// The task is kept for 10 minutes at least after its last outcome, and after the latest request that joined it
	// since. When it has been forgotten, or was deleted, so are its keys: a submit makes a new task. A task remembers
	// its last 64 requests, those that joined it among them, and each for 10 minutes at least: while it has 16 of the
	// last 10 minutes, another one that only joins a run is not recorded, and one that would begin a run or change
	// parameters is refused with an *OverloadError. A request that joins while the store is almost full, or while a
	// node of an older release is present that cannot read such a record, is not recorded either: repeated, it is a
	// new request.
	RequestKey string
}

// Overrides returns what the options override of the policy.
func (o *SubmitOptions) Overrides() events.Overrides {
	return events.Overrides{
		MaxAttempts: o.MaxAttempts,
		Timeout:     o.Timeout,
		Retain:      o.Retain,
	}
}
