package engine

import (
	"fmt"
	"math"
	"time"

	"taskledger/events"
	"taskledger/internal/message"
	"taskledger/internal/wire"
)

// command is one request to a shard. The set is closed: pointers to the types below. What is sent for every task encodes
// itself; the others are messages.
type command interface {
	op() uint64
	size() int // at least what it takes encoded, and what its events and its answer take in an entry
}

// selfEncoded is a command that is sent for every task or every offer.
type selfEncoded interface {
	encode(w *wire.Writer)
	decode(r *wire.Reader)
}

func encodeCommand(w *wire.Writer, c command) {
	w.Uint(c.op())
	if own, ok := c.(selfEncoded); ok {
		own.encode(w)
		return
	}
	w.Bytes(message.Encode(c))
}

// decodeCommand reads into c what follows its number.
func decodeCommand(r *wire.Reader, c command) {
	if own, ok := c.(selfEncoded); ok {
		own.decode(r)
		return
	}
	if err := message.Decode(r.View(), maxMessageBytes, c); err != nil {
		r.Fail("command %d: %v", c.op(), err)
	}
}

// submitCommand asks for a task.
type submitCommand struct {
	Task      events.TaskID
	Behavior  string
	Policy    events.Policy // complete
	Priority  int64
	NotBefore events.Millis // 0 = now
	Params    events.Payload
	RequestID string
	Merges    bool // the submitter can combine parameters, and must be asked when the task exists
	RunNow    bool // as Plan has it

	checked bool // in this process, which is as good as by the owner; never sent
}

// mergeCommand is the second step of a submit that met an existing task: the combined parameters, valid only if the task
// did not change since.
type mergeCommand struct {
	Submit   submitCommand // with the combined Params
	Life     events.Ref
	Seq      uint64
	Operator bool // it is no submit but the retry of a task that has ended, with its own parameters
}

// completeCommand reports how an attempt ended.
type completeCommand struct {
	Task     events.TaskID
	Started  events.Ref // names the attempt
	Node     string
	How      completion
	Result   events.Payload
	Error    *events.Error // of failed
	Next     events.Millis // earliest time of the next attempt, of succeeded and failed; anyTime = Wait alone counts, 0 = there is no next attempt
	ByPolicy bool          // of failed: Next follows from the recorded policy and Random
	Random   uint32        // drawn for the back-off; the fraction of 2^32
	Wait     time.Duration // how long the next attempt is put off at least; counts for snoozed, and beside a Next
}

// anyTime is a Next in the past.
const anyTime events.Millis = 1

type completion uint8

const (
	succeeded completion = iota
	failed
	snoozed
	released
)

// progressCommand reports how far an attempt is.
type progressCommand struct {
	Task     events.TaskID
	Started  events.Ref
	Node     string
	Progress events.Progressed
}

// operateCommand is what an operator asks of a task.
type operateCommand struct {
	Task   events.TaskID
	Do     operation
	Reason string
}

type operation uint64

const (
	doCancel operation = iota
	doRunNow
	doRetry
	doSuspend
	doResume
	doDelete
	operationCount
)

var operationNames = [operationCount]string{"cancel", "run", "retry", "suspend", "resume", "delete"}

func (o operation) String() string { return operationNames[o] }

// pauseCommand keeps tasks of a behavior from starting, or lets them start again.
type pauseCommand struct {
	Behavior string
	Paused   bool
}

// offerCommand is a standing offer: slots of a node that the owner may fill. It is answered with assignments, or with
// none when a later offer of the sender closes it.
type offerCommand struct {
	Node      string
	Lease     events.Millis
	Slots     int
	Behaviors []offeredBehavior
}

type offeredBehavior struct {
	Behavior string
	Slots    int
}

// rollCallCommand lists the attempts of a node in a shard, running or with an unanswered outcome, that started in the
// range from From to before To.
type rollCallCommand struct {
	Node     string
	Epoch    int64 // of the owner that it is for: what the node started in its own shard under a later one is not listed
	Attempts []attemptName
	Answered uint64     // every offer up to this number is answered
	From, To events.Ref // To 0: without end
}

// covers reports whether an attempt that started there would be listed.
func (c *rollCallCommand) covers(started events.Ref) bool {
	return started >= c.From && (c.To == 0 || started < c.To)
}

// attemptName names an attempt: a task and the position of the Started.
type attemptName struct {
	Task    events.TaskID
	Started events.Ref
}

// handOverCommand asks the owner to give the shard to a node that is ready to serve it.
type handOverCommand struct{ Node string }

// getCommand reads a task.
type getCommand struct {
	Task   events.TaskID
	Linear bool // the answer waits for a proof of ownership
}

// awaitCommand asks for the outcome of a run.
type awaitCommand struct {
	Task events.TaskID
	Life events.Ref // 0 = whichever life there is
	Run  uint64     // at most math.MaxUint32; 0 = the present run, or the last one when none is due
}

// listCommand reads tasks in id order, those after an id that match a Filter of these fields.
type listCommand struct {
	Status                   uint64 // a projection.Status
	Behavior, Affinity, Node string
	Limit                    int64
	After                    events.TaskID
}

// infoCommand reads what the shard tells of itself.
type infoCommand struct {
	Digest bool // with the digest of the state, which takes a look at every task
}

func (*submitCommand) op() uint64   { return 1 }
func (*mergeCommand) op() uint64    { return 2 }
func (*completeCommand) op() uint64 { return 3 }
func (*progressCommand) op() uint64 { return 4 }
func (*operateCommand) op() uint64  { return 5 }
func (*pauseCommand) op() uint64    { return 6 }
func (*offerCommand) op() uint64    { return 7 }
func (*rollCallCommand) op() uint64 { return 8 }
func (*handOverCommand) op() uint64 { return 9 }
func (*getCommand) op() uint64      { return 10 }
func (*awaitCommand) op() uint64    { return 11 }
func (*listCommand) op() uint64     { return 12 }
func (*infoCommand) op() uint64     { return 13 }

func newCommand(op uint64) command {
	switch op {
	case 1:
		return new(submitCommand)
	case 2:
		return new(mergeCommand)
	case 3:
		return new(completeCommand)
	case 4:
		return new(progressCommand)
	case 5:
		return new(operateCommand)
	case 6:
		return new(pauseCommand)
	case 7:
		return new(offerCommand)
	case 8:
		return new(rollCallCommand)
	case 9:
		return new(handOverCommand)
	case 10:
		return new(getCommand)
	case 11:
		return new(awaitCommand)
	case 12:
		return new(listCommand)
	case 13:
		return new(infoCommand)
	case 14:
		return new(explainCommand)
	case 15:
		return new(planCommand)
	case 16:
		return new(settleCommand)
	}
	return nil
}

func (c *submitCommand) size() int {
	return commandBytes + len(c.Task) + len(c.Behavior) + len(c.RequestID) + len(c.Params)
}

func (c *mergeCommand) size() int { return commandBytes + len(c.Submit.Task) + c.Submit.size() }
func (c *progressCommand) size() int {
	return commandBytes + len(c.Task) + len(c.Node) + len(c.Progress.Note)
}
func (c *operateCommand) size() int { return commandBytes + len(c.Task) + len(c.Reason) }
func (*pauseCommand) size() int     { return commandBytes + maxSettingsBytes }
func (c *offerCommand) size() int   { return 64 + 64*len(c.Behaviors) }
func (*handOverCommand) size() int  { return 64 }
func (c *getCommand) size() int     { return 64 + len(c.Task) }
func (c *awaitCommand) size() int   { return 64 + len(c.Task) }
func (*listCommand) size() int      { return 512 }
func (*infoCommand) size() int      { return 16 }

func (c *rollCallCommand) size() int {
	n := commandBytes + len(c.Node)
	for i := range c.Attempts {
		n += 16 + len(c.Attempts[i].Task)
	}
	return n
}

func (c *completeCommand) size() int {
	n := 2*commandBytes + 2*len(c.Task) + len(c.Node) + len(c.Result) // the task may be run again at once: two events
	if c.Error != nil {
		n += len(c.Error.Code) + len(c.Error.Message)
		for name, value := range c.Error.Properties {
			n += 16 + len(name) + len(value)
		}
	}
	return n
}

func (c *submitCommand) encode(w *wire.Writer) {
	w.Array(9)
	w.Text(string(c.Task))
	w.Text(c.Behavior)
	c.Policy.Encode(w)
	w.Int(c.Priority)
	w.Int(int64(c.NotBefore))
	w.Bytes(c.Params)
	w.Text(c.RequestID)
	w.Bool(c.Merges)
	w.Bool(c.RunNow)
}

func (c *submitCommand) decode(r *wire.Reader) {
	r.ArrayOf(9)
	c.Task, c.Behavior = events.TaskID(r.Text()), r.Text()
	c.Policy.Decode(r)
	c.Priority, c.NotBefore, c.Params, c.RequestID, c.Merges = r.Int(), events.Millis(r.Int()), r.Bytes(), r.Text(), r.Bool()
	c.RunNow = r.Bool()
}

func (c *mergeCommand) encode(w *wire.Writer) {
	w.Array(4)
	c.Submit.encode(w)
	w.Uint(uint64(c.Life))
	w.Uint(c.Seq)
	w.Bool(c.Operator)
}

func (c *mergeCommand) decode(r *wire.Reader) {
	r.ArrayOf(4)
	c.Submit.decode(r)
	c.Life, c.Seq, c.Operator = events.Ref(r.Uint()), r.Uint(), r.Bool()
}

func (c *completeCommand) encode(w *wire.Writer) {
	w.Array(10)
	w.Text(string(c.Task))
	w.Uint(uint64(c.Started))
	w.Text(c.Node)
	w.Uint(uint64(c.How))
	w.Bytes(c.Result)
	if c.Error == nil {
		w.Array(0)
	} else {
		w.Array(1)
		c.Error.Encode(w)
	}
	w.Int(int64(c.Next))
	w.Bool(c.ByPolicy)
	w.Uint(uint64(c.Random))
	w.Int(c.Wait.Milliseconds())
}

func (c *completeCommand) decode(r *wire.Reader) {
	r.ArrayOf(10)
	c.Task, c.Started, c.Node, c.How = events.TaskID(r.Text()), events.Ref(r.Uint()), r.Name(), completion(r.Uint())
	c.Result = r.Bytes()
	if r.Array() > 0 {
		c.Error = new(events.Error)
		c.Error.Decode(r)
	}
	c.Next, c.ByPolicy, c.Random = events.Millis(r.Int()), r.Bool(), uint32(r.Uint())
	c.Wait = time.Duration(r.Int()) * time.Millisecond
	if c.How > released || c.How == failed && c.Error == nil {
		r.Fail("completion %d", c.How)
	}
}

func (c *progressCommand) encode(w *wire.Writer) {
	w.Array(6)
	w.Text(string(c.Task))
	w.Uint(uint64(c.Started))
	w.Text(c.Node)
	w.Int(c.Progress.Done)
	w.Int(c.Progress.Total)
	w.Text(c.Progress.Note)
}

func (c *progressCommand) decode(r *wire.Reader) {
	r.ArrayOf(6)
	c.Task, c.Started, c.Node = events.TaskID(r.Text()), events.Ref(r.Uint()), r.Text()
	c.Progress = events.Progressed{Done: r.Int(), Total: r.Int(), Note: r.Text()}
}

func (c *offerCommand) encode(w *wire.Writer) {
	w.Array(4)
	w.Text(c.Node)
	w.Int(int64(c.Lease))
	w.Int(int64(c.Slots))
	w.Array(2 * len(c.Behaviors))
	for _, b := range c.Behaviors {
		w.Text(b.Behavior)
		w.Int(int64(b.Slots))
	}
}

func (c *offerCommand) decode(r *wire.Reader) {
	r.ArrayOf(4)
	c.Node, c.Lease, c.Slots = r.Text(), events.Millis(r.Int()), int(r.Int())
	if n := pairs(r); n > 0 {
		c.Behaviors = make([]offeredBehavior, n)
	}
	for i := range c.Behaviors {
		c.Behaviors[i] = offeredBehavior{r.Text(), int(r.Int())}
	}
}

// pairs reads the head of an array of pairs and returns how many there are.
func pairs(r *wire.Reader) int {
	n := r.Array()
	if n%2 != 0 {
		r.Fail("array of %d values for pairs", n)
		return 0
	}
	return n / 2
}

func (c *rollCallCommand) encode(w *wire.Writer) {
	w.Array(6)
	w.Text(c.Node)
	w.Int(c.Epoch)
	encodeAttempts(w, c.Attempts)
	w.Uint(c.Answered)
	w.Uint(uint64(c.From))
	w.Uint(uint64(c.To))
}

func (c *rollCallCommand) decode(r *wire.Reader) {
	r.ArrayOf(6)
	c.Node, c.Epoch, c.Attempts, c.Answered = r.Text(), r.Int(), decodeAttempts(r), r.Uint()
	c.From, c.To = events.Ref(r.Uint()), events.Ref(r.Uint())
}

func encodeAttempts(w *wire.Writer, attempts []attemptName) {
	w.Array(2 * len(attempts))
	for _, a := range attempts {
		w.Text(string(a.Task))
		w.Uint(uint64(a.Started))
	}
}

func decodeAttempts(r *wire.Reader) (attempts []attemptName) {
	if n := pairs(r); n > 0 {
		attempts = make([]attemptName, n)
	}
	for i := range attempts {
		attempts[i] = attemptName{events.TaskID(r.Text()), events.Ref(r.Uint())}
	}
	return attempts
}

// Check refuses an operation that there is not.
func (c *operateCommand) Check() error {
	if c.Do >= operationCount {
		return fmt.Errorf("operation %d", uint64(c.Do))
	}
	return nil
}

// Check refuses a run that no life of a task has.
func (c *awaitCommand) Check() error {
	if c.Run > math.MaxUint32 {
		return fmt.Errorf("run %d", c.Run)
	}
	return nil
}

// explainCommand asks why a task does not run.
type explainCommand struct{ Task events.TaskID }

// planCommand asks a node that has the behavior's code where and when a task belongs, and with Merge what the parameters
// of a second submit come to.
type planCommand struct {
	Behavior string
	Params   []byte
	Merge    bool
	Stored   []byte
}

func (*explainCommand) op() uint64 { return 14 }
func (*planCommand) op() uint64    { return 15 }
func (*explainCommand) size() int  { return 64 }
func (c *planCommand) size() int   { return 96 + len(c.Params) + len(c.Stored) }
