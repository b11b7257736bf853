// Package behaviors lets a program define kinds of work, submit tasks and wait for their outcomes, with Go types.
//
// A behavior is a kind of work: an id, the type P of its parameters, the type R of its result, and rules. Define
// makes one. Callers and implementers share that value, usually a package variable; only implementers bind a function
// to it:
//
//	var resize = behaviors.Define[Image, Thumbnail]("resize", nil)
//
//	// in the process that does the work
//	engine.NodeConfig{Behaviors: []task.Behavior{resize.Bind(resizeImage)}}
//
//	// in any process of the cluster
//	f, err := resize.Submit(ctx, client, Image{Path: "a.png"})
//	thumbnail, err := f.Wait(ctx)
//
// Parameters and results travel as JSON text by the rules of encoding/json. None is sent as nothing; where None is
// wanted, JSON text that decodes as an empty struct is taken as well. Fields that P does not have are ignored, so a
// field with a typing error is left at zero; Rules.DisallowUnknownFields refuses a submit with such fields.
//
// # What a function returns
//
// A bound function gets the parameters and a context that ends when the attempt must stop. What it returns decides
// what comes next:
//
//   - a nil error: the task has succeeded, and Rules.AfterSuccess says whether and when it runs again;
//   - Snooze(d): this was no failure; the task runs again after d, and no attempt is used up;
//   - Release(d): the attempt is given back; after d the task is ready for any node again, as if its node had stopped;
//   - RetryAfter(d, err): a failure, retried after d;
//   - Cancel(err): a failure that is final;
//   - any other error: a failure. The policy retries it, with a growing back-off, until Policy.MaxAttempts attempts of
//     the run have failed; Rules.AfterFailure, where there is one, decides instead of the policy.
//
// These errors may be wrapped and joined. Code adds a code and properties that callers see in task.Error.
//
// A panic is a failure that the policy, or Rules.AfterFailure, retries. The text of its error holds the stack, and
// everybody who can read the task can read it. An attempt that outlives Policy.Timeout, and returns an error then,
// has failed with the code events.CodeTimeout.
//
// An attempt can be cut off at any moment, when its node dies, and is then made again. So the function must do its
// outside effects in a way that allows a repetition. Attempt returns what helps: the id of the task, the number of
// the attempt, and a fencing token that grows with every attempt. It also has the attempt's logger and its progress
// reporter.
//
// context.Cause tells why the context has ended. By errors.Is it is task.ErrCancelled if the task was cancelled,
// and its text says who did, and why. Other causes are texts for people: the time-out, with context.DeadlineExceeded
// as ctx.Err, the stop of the node, or the end of its session.
//
// Whatever the function or a rule asks for, the next attempt starts 50 ms after the start of this one at the earliest.
//
// # Rules
//
// Rules say what an id is made of, how long the first attempt waits, what becomes of a second submit with the same
// id, and when a task is repeated. Each rule that is left out has a documented default, so nil rules make tasks with
// random ids that run once and are retried by the default policy. Rules run outside of the engine's decisions:
// TaskID, Delay, Priority and Merge in the process that submits, AfterSuccess and AfterFailure on the node that made
// the attempt. They should depend on their arguments alone.
//
// HashID makes an id from what distinguishes a task. Two submits that lead to the same id join in one task.
//
// # Futures
//
// Submit returns a Future when the request is durable; a caller that needs no outcome can drop it. Attach makes the
// Future of a task that another process submitted. Then, Handle, All and Any compose futures. A function can submit
// further tasks by the client that Submitter returns. While it waits for one under its own context, it lends its slot
// to others.
//
// Package builtin below this one has behaviors for what many programs do: it makes HTTP requests, runs programs and
// sums up files.
package behaviors
