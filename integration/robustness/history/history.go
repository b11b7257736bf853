// Package history holds the record of a run under faults: what clients asked and were told, what functions did, which
// faults were in force, and what etcd holds. The checkers read nothing else, so a kept run can be checked again.
//
// All times are nanoseconds of one clock that no fault touches, counted from the beginning of the run.
package history

import (
	"taskledger/events"
)

// Run is one history.
type Run struct {
	Info       Info
	Operations []Operation
	Items      []ItemCall // calls of clients of task stores
	Executions []Execution
	Changes    []Change // that items of works have made
	Visits     []Visit  // in their order
	Feeds      []Feed
	Faults     []Fault
	Members    []Journals // as they were written, and as each etcd member, with the archive, tells them after all faults have healed and Served was asked for; at least one
	Keys       []KeyChange
	Served     []Served // what the owners told of every task at the end
	Remains    Remains
	Damage     []Finding
}

// Finding describes a failure of the program that the harness itself saw, and that no other part of the record shows.
type Finding struct {
	Invariant string // number and name, as package check has them
	Text      string
}

// Info says which run it was and what it promised.
type Info struct {
	Kind      string // "real" or "simulated"
	Seed      uint64
	Command   string   // that repeats it
	Versions  []string // of the program and the servers
	Shards    int
	TTLMs     int64 // of sessions
	BoundMs   int64 // within which every acknowledged task must end once the faults have healed
	Healed    int64 // when the last fault had healed
	End       int64
	EndWall   int64          // End by a wall clock that no fault stepped, milliseconds since 1970; 0 = not known
	Read      int64          // time up to which the journals hold all that was written; 0 = they hold everything
	Trimmed   int            // entries that left etcd for the archive, where that is counted
	Archived  int            // entries in the archive at the end, where that is counted
	Limits    map[string]int // of a behavior: attempts of it at once on each node; none: as many as a node has slots
	Snapshots int            // that were published, or compared with the journal at the end, where that is counted
	Commands  int            // of the command line that were answered, where they are typed
	Planned   []string       // kinds of faults that the run must have
	Problems  []string       // of the run itself: a fault that did not bite, too little traffic; it then proves nothing
	Filled    []Span         // in which a process saw that the load had filled the store so far that nothing is admitted, where that is watched
}

// Span is a stretch of time.
type Span struct{ From, Until int64 }

// Verb names the kind of a client's call.
type Verb string

// The verbs. Wait is the wait for a future: the one that the submit returned, or one that was attached later. Pause,
// Unpause and Settings concern the settings, and their Task is events.Settings. List concerns no single task, and its
// Task is "". File schedules.go has the verbs of schedules.
const (
	Submit   Verb = "submit"
	Wait     Verb = "wait"
	Get      Verb = "get" // linear
	Cancel   Verb = "cancel"
	Retry    Verb = "retry"
	RunNow   Verb = "run-now"
	Delete   Verb = "delete"
	Suspend  Verb = "suspend"
	Resume   Verb = "resume"
	Pause    Verb = "pause"
	Unpause  Verb = "unpause"
	Settings Verb = "settings" // a linear read of them
	List     Verb = "list"     // every page of it
)

// Answer names the way in which an operation ended.
type Answer string

// The answers.
const (
	OK      Answer = "ok"      // acknowledged; of Wait and Get: told
	Refused Answer = "refused" // definitely not done: illegal in the task's state, or overload
	Absent  Answer = "absent"  // the task does not exist
	Unknown Answer = "unknown" // it may have been done, or be done later; Return is 0 then
	Untold  Answer = "untold"  // of Wait: nothing, or no outcome, although its client lived and waited; Return is 0 then
)

// Operation is one call of a client. A client makes one call at a time; after Unknown it goes on under another number.
type Operation struct {
	Client int
	Verb   Verb
	Task   string
	Call   int64
	Return int64 // 0 = never
	Answer Answer

	Joined    bool   // of Submit: the task existed
	Repeated  bool   // of Submit: the same request has made or changed the task before
	By        string // of Submit without an id, whose request names the task: principal and behavior; the same request by the same is for one task
	Body      string // of the same: all else that it asked for
	RunsAgain bool   // of Submit: a task that has ended gets a further run
	Options          // of Submit
	Request   string // of Submit: its request key; a repeated one joins the run that the first one asked for. Of Wait: that of the submit whose future it is
	Shown            // of Get
	// Outcome holds the result of an ended run that Wait or Get returned: "=" and the result as JSON text, or "!" and
	// the code of the error. "" when the run has not ended.
	Outcome string
	Error   string // for people

	Caller       events.Caller // who asked, as the events that follow from it name it; the zero value = not known
	Forbidden    string        // the limit that it breaks, so that it must be refused; "" = none
	OtherRequest bool          // of Submit: it was refused because its request key stands for another request
	Terms        string        // of Submit: those that it brings, as TermsOf writes them; of Get: those of the task. "" = not known
	Behavior     string        // of Pause and Unpause; of List: of the tasks that it asks for, "" = of any
	Reason       string        // of Pause and SetSchedule
	Paused       string        // of Settings: what is paused, as PausedText writes it
	Listed       []Life        // of List: in its order

	Schedule *ScheduleCall `json:",omitempty"` // of a verb of schedules; nil for every other one
}

// Options holds what a submit asks for beside its parameters.
type Options struct {
	Delay    int64         // nanoseconds
	Deadline events.Millis // 0 = none
	Tags     string        // in order, with spaces between them
}

// Shown holds the state of a task that a Get returned.
type Shown struct {
	Status    string        // as task.Status prints it
	Attempt   uint32        // attempts started in this life
	Substatus string        // at Looked; "" = not known
	Since     events.Millis // of Substatus
	Looked    events.Millis // when, by the clock of the caller
}

// Life is a task from its creation on.
type Life struct {
	Task    string
	Created events.Ref
}

// Execution is one call of a task's function, as the function itself reported it on a way that faults do not touch.
type Execution struct {
	Task     string
	Node     string          // session id
	Token    events.Position // of the Started that caused it
	Attempt  uint32
	Try      uint32 // of the run, as the function was told: 1 and the failures before; 0 = not known
	Begin    int64
	End      int64  // 0 = it never returned: its process died
	Outcome  string // as in Operation; "" = it was told to stop, or never returned
	Final    bool   // a failed outcome that asks for no further attempt
	Wait     int64  // until the next attempt or run that the outcome asks for; 0 = none, or it does not say
	Releases bool   `json:",omitempty"` // it gives its attempt back
	Repeats  bool   // its policy has another run follow, also where the attempt was lost: that begins later
}

// Fault is one disturbance.
type Fault struct {
	Kind   string
	Target string
	From   int64
	Until  int64
	Proof  string // what shows that it bit; "" = nothing does

	Round    int // of a real run: faults of one round were in force at a time; from 1
	InFlight int // of a real run: acknowledged tasks that had not ended when it began
}

// Journals holds the entries of one etcd member, or, under another name, those that a watch of all members has seen.
type Journals struct {
	Member  string
	Entries [][]Record // by shard, in order, archived ones included
}

// Record is a stored entry.
type Record struct {
	Number   uint64
	Revision int64 // mod revision in etcd
	Created  int64 // create revision in etcd; differs from Revision when the key was written twice. 0 = not known
	At       int64 // when it was committed, by the clock of the run; 0 = not known
	Data     []byte
}

// KeyChange is a change of a node/ or owner/ key, in the order of revisions, from the first revision on.
type KeyChange struct {
	Revision int64
	At       int64  // when it was made, or seen, by the clock of the run; 0 = not known
	Node     string // of a node key: the session id
	Shard    int    // of an owner key; meaningful when Node is ""
	Owner    string // of an owner key: the session id that it names now
	Deleted  bool

	// Of a node key that is there.
	Slots     int    // 0 = none, or not known
	Behaviors string // that the node runs, separated by blanks
	Draining  bool
}

// Served is a task as its owner showed it at the end.
type Served struct {
	Task    string
	Status  string
	Seq     uint64
	Attempt uint32
	Runs    uint32
	Outcome string // as in Operation

	Whole     bool // the rest is told, too
	Suspended bool
	Due       events.Millis
	Failures  uint32 // of the run
	Lost      uint32 // of the run

	Creator     string // principal
	LastNode    string
	WaitCause   string // name of the kind of event that took it off its node; "" = it does not wait for that
	WaitSince   events.Millis
	SuspendedAt events.Millis

	Terms     string        // as TermsOf writes them; "" = not known
	Substatus string        // at Looked; "" = not known
	Since     events.Millis // of Substatus
	Looked    events.Millis
}

// Remains lists what was left after every node and client had stopped.
type Remains struct {
	Checked bool
	Leases  int
	Keys    []string // other than meta, nodes, owner/, journal/ and snapshot/ keys
	Others  []string // goroutines, files, watchers: in words
}
