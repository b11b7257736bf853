// Package engine is the task engine: it records requests, decides when they run, runs each on one node at a time,
// and delivers the outcome to every caller.
//
// Most programs reach it through other packages. Package behaviors gives tasks types, and defines kinds of work.
// Packages cluster and engine/embedded connect an engine to etcd and NATS. This comment says what the engine does
// with a task, and what it expects of its callers.
//
// # Tasks, shards and journals
//
// A task has an id, a behavior, parameters, a state and a history. Its id selects one of a fixed number of shards.
// Each shard has one owner among the nodes, which decides every command about its tasks, in turn, against a state
// in memory, and appends the resulting events to the journal of the shard as one entry. Commands that arrive while
// an entry is being written gather and become the next entry. Nothing leaves the owner, no answer and no start of
// an attempt, before the entry that records it is committed. So the state in memory is always what the journal
// leads to, and a next owner continues from the same state by reading a snapshot and the entries after it.
//
// An attempt is one call of a behavior's function, on one node. A run is the attempts up to one outcome: a success,
// or a failure that is not retried. A task that is repeated, or submitted again after its end, has several runs.
//
// # Ports
//
// The engine depends on the three ports of package store, and on no implementation of them:
//
//   - the store holds journals, snapshots, the presence of nodes and the ownership of shards. It is the only truth, and
//     the only port whose failure stops anything. Package etcdstore implements it.
//   - the bus carries hints and requests between members. Without it everything goes by way of the store, more slowly.
//     Package natsbus implements it.
//   - the archive stores journal entries that snapshots cover, so that they can be removed from the store. Without one
//     the journals stay in the store, or are trimmed for good; see NodeConfig.Trimming. Package natsbus implements it.
//
// # Nodes and clients
//
// A Node owns shards, makes attempts, and can do everything that a Client can. A Client submits, waits and reads;
// it needs the bus or the store, and with the bus alone it cannot read what has left the memory of the owners.
//
//	node, err := engine.NewNode(engine.NodeConfig{Store: s, Bus: b, Archive: a, Behaviors: kinds})
//	if err != nil {
//		return err // the configuration is wrong; nothing has been started
//	}
//	err = node.Run(ctx) // until ctx ends
//
// Constructors check their configuration and start nothing. Run starts every goroutine and returns when all of them
// have ended; it may be called once. A call that needs the owner of a shard and is made before Run waits for it. To
// stop, end the context of Run, wait until it has returned, and then close the ports. A node that is stopped so
// drains: it starts no further attempt, gives the running ones NodeConfig.Grace, releases the rest, and hands its
// shards over. Functions that ignore their context are the only goroutines that can be left behind.
//
// A node is present as long as it renews its session, a lease in the store. When it cannot, it cancels its attempts
// and gives up its shards before the lease runs out, and begins a new session as soon as it can; Run goes on
// meanwhile.
//
// # Submitting
//
// Submit returns when the request is committed. After task.ErrUnknown the request was sent and not answered: the
// future's ID names the task that may exist, and a submit with that id finds out. After every other error nothing
// was accepted:
//
//   - *store.InvalidError and *task.LimitError: the request breaks a rule or a limit, and would break it again.
//   - *task.StateError: the task of that id has another behavior, or its parameters are no longer stored and cannot be
//     combined.
//   - *task.OverloadError: submit again after RetryAfter.
//   - store.ErrUnavailable: the cluster could not be asked in time, or, with task.ErrNoNode, no node has been alive for
//     3 s; task.ErrClosed: Run has ended.
//   - task.ErrUnknownBehavior, of a submit by name: no live node has the behavior.
//
// Nothing is acknowledged that no owner has decided, so a submit needs a node that is alive. task.AwaitNodes makes
// calls wait for one. A process that is to submit whether workers run or not is a node without slots,
// NodeConfig.Slots -1.
//
// SubmitMany is Submit for up to 1,000 requests, which travel together and cost less. It returns a result for each.
//
// A submit whose id names an existing task joins that task. What it then waits for, and whether it changes the
// parameters or the schedule, depends on the state of the task and on its behavior: ARCHITECTURE.md has the table.
//
// # Outcomes
//
// A Future is the outcome of the run that its submit joined. It resolves once, with the outcome that was committed,
// in every process alike; Attach returns one for a task that somebody else submitted. An error from Wait is a
// *task.Error if the task failed; other errors say why the outcome is not known. A failed attempt that is retried
// resolves nothing.
//
// # Implementing a behavior
//
// Programs normally use package behaviors. Package task describes Behavior, and what its implementer owes the
// engine. The functions of a behavior run in the process that submits and on the node that makes the attempt; the
// owner of a shard calls none of them, and decides by the Policy that was recorded with the task.
//
// # Reading
//
// Get and List answer from the memory of the owners and may be a moment behind; GetLinear reflects everything that
// was committed before the call. GetForgotten finds what they have forgotten in the journals and the archive, too,
// and takes longer. They return a task.Task, whose Version every event of the task changes, and nothing else.
// Ledger returns what reads the journals and the archive: histories, states at a time, all events in order,
// verification and exports. Package ledger describes it.
//
// # Operating
//
// Operations changes tasks and behaviors as operators ask for it, one task or all that a filter selects, and
// reports on the cluster: its settings, nodes and shards. Stores reads and changes the items of task stores, for
// package taskstore.
//
// All exported methods may be called concurrently unless they say otherwise.
package engine
