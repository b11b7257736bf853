package works

import (
	"cmp"
	"math"
	"unicode/utf8"

	"taskledger/events"
	"taskledger/internal/wire"
	"taskledger/store"
	"taskledger/task"
	"taskledger/work/workledger"
)

// The numbers of the commands and questions of works.
const (
	opPlan uint64 = iota + 31
	opBegin
	opBucket
	opPermits
	opReset
	opRerun
	opShow
	opMove
	opHeld
	opPosition
	opLeft
)

// commandBytes bounds the bytes of a command without its texts, with its events and its answer.
const commandBytes = 512

// failureBytes bounds the failure of a work, which may follow a command.
const failureBytes = 1024

// Plan begins a run of the work of a task, or goes on with the one that is under way. An attempt asks it first.
type Plan struct {
	Task       string // of the attempt
	Started    uint64 // names the attempt
	Node       string
	Parent     string // the task has the work that it is a worker of; "" = its own
	Definition string // hash of the definition
	Partitions []byte // as EncodePartitions writes them; of a worker: none
}

// Begin begins a partition.
type Begin struct {
	Task      string
	Started   uint64
	Node      string
	Partition int64
	Counted   bool // Expected is known
	Expected  uint64
}

// Bucket reports how a bucket has ended, or gives it back, and takes the next one.
type Bucket struct {
	Task     string
	Started  uint64
	Node     string
	Run      int64  // that the attempt has opened: another one cuts otherwise; 0 = whichever
	Ended    uint64 // the bucket that is done; 0 = none
	Done     uint64 // of its items
	Failed   uint64
	Skipped  uint64
	Errors   []byte // as events.EncodeItemErrors writes them; empty = none
	Returned uint64 // the bucket that is given back; 0 = none
	Want     bool   // another one
}

// Permits asks whether items of the attempt's bucket may be counted.
type Permits struct {
	Task    string
	Started uint64
	Node    string
	Counter string
	Items   []uint64 // hashes of bucket and key
	Reason  string   // why the work stops where the counter of a rule does not grant them all
}

// Reset forgets what a run has done, or sets the token of a stream.
type Reset struct {
	Task   string
	What   int64 // an events.ResetScope
	Seen   uint64
	Token  []byte // of events.ResetToken
	Reason string // of events.ResetToken
}

// Optional implements message.Optional.
func (*Reset) Optional() int { return 2 }

// Rerun plans a run over the buckets that had failed items.
type Rerun struct {
	Task string
	Seen uint64
}

// Show asks for a work.
type Show struct {
	Task   string
	Plan   bool // with the partitions as they were planned
	Linear bool // the answer waits for a proof of ownership
}

func (*Plan) Op() uint64    { return opPlan }
func (*Begin) Op() uint64   { return opBegin }
func (*Bucket) Op() uint64  { return opBucket }
func (*Permits) Op() uint64 { return opPermits }
func (*Reset) Op() uint64   { return opReset }
func (*Rerun) Op() uint64   { return opRerun }
func (*Show) Op() uint64    { return opShow }

func shardOf(id string, count int) int { return events.TaskID(id).Shard(count) }

// Shard tells the shard of what the command names.
func (c *Plan) Shard(count int) int    { return shardOf(c.Task, count) }
func (c *Begin) Shard(count int) int   { return shardOf(c.Task, count) }
func (c *Bucket) Shard(count int) int  { return shardOf(c.Task, count) }
func (c *Permits) Shard(count int) int { return shardOf(c.Task, count) }
func (c *Reset) Shard(count int) int   { return shardOf(c.Task, count) }
func (c *Rerun) Shard(count int) int   { return shardOf(c.Task, count) }
func (c *Show) Shard(count int) int    { return shardOf(c.Task, count) }

// Size implements command.Command.
func (c *Plan) Size() int {
	return commandBytes + 2*len(c.Task) + len(c.Node) + len(c.Parent) + len(c.Definition) + len(c.Partitions)
}
func (c *Begin) Size() int { return commandBytes + 3*len(c.Task) + len(c.Node) }
func (c *Bucket) Size() int {
	return commandBytes + failureBytes + 3*len(c.Task) + len(c.Node) + len(c.Errors)
}
func (c *Permits) Size() int {
	return commandBytes + failureBytes + 3*len(c.Task) + len(c.Node) + len(c.Counter) + len(c.Reason) + 2*9*len(c.Items)
}
func (c *Reset) Size() int { return commandBytes + 2*len(c.Task) + len(c.Token) + len(c.Reason) }
func (c *Rerun) Size() int { return commandBytes + 3*len(c.Task) }
func (c *Show) Size() int  { return commandBytes + len(c.Task) }

// Limits implements command.Command.
func (c *Plan) Limits() error {
	if err := cmp.Or(
		limitAttempt(c.Task, c.Node),
		limitText("parent", c.Parent, events.MaxIDBytes),
		limitText("definition", c.Definition, events.MaxDefinitionBytes),
	); err != nil {
		return err
	}
	if c.Parent != "" {
		if events.WorkerNumber(events.TaskID(c.Parent), events.TaskID(c.Task)) < 2 || len(c.Partitions) > 0 {
			return invalid("parent", "want a task that this one is a worker of, and no partitions")
		}
		return nil
	}
	if n := len(c.Task); n > events.MaxWorkParentBytes {
		return &task.LimitError{Field: "id of a work", Limit: events.MaxWorkParentBytes, Got: int64(n)}
	}
	all, err := c.partitions()
	if err == nil {
		err = events.CheckPartitions(all)
	}
	if err != nil {
		return invalid("partitions", "want some that can be read, within their limits: "+err.Error())
	}
	return nil
}

// partitions reads the partitions.
func (c *Plan) partitions() ([]events.WorkPartition, error) { return decodePartitions(c.Partitions) }

// EncodePartitions writes partitions as a Plan has them.
func EncodePartitions(all []events.WorkPartition) []byte {
	var w wire.Writer
	w.Array(len(all))
	for i := range all {
		all[i].Encode(&w)
	}
	return w.B
}

func decodePartitions(data []byte) (all []events.WorkPartition, err error) {
	if err := wire.Scan(data); err != nil {
		return nil, err
	}
	r := wire.NewReader(data)
	n := r.Array()
	if n > events.MaxPartitions {
		return nil, &task.LimitError{Field: "partitions", Limit: events.MaxPartitions, Got: int64(n)}
	}
	for range n {
		var p events.WorkPartition
		p.Decode(r)
		all = append(all, p)
	}
	return all, r.Close()
}

// Limits implements command.Command.
func (c *Begin) Limits() error {
	if c.Partition < 1 || c.Partition > events.MaxPartitions {
		return &task.LimitError{Field: "partition", Limit: events.MaxPartitions, Got: c.Partition}
	}
	return limitAttempt(c.Task, c.Node)
}

// Limits implements command.Command.
func (c *Bucket) Limits() error {
	if err := limitAttempt(c.Task, c.Node); err != nil {
		return err
	}
	if most := max(c.Ended, c.Returned); most > events.MaxBuckets {
		return &task.LimitError{Field: "bucket", Limit: events.MaxBuckets, Got: int64(min(most, math.MaxInt64))}
	}
	if c.Want && c.Returned != 0 {
		return invalid("want", "want none with a bucket that is given back: it is the next one")
	}
	if c.Ended != 0 && c.Returned != 0 || c.Ended == 0 && (c.items() != events.ItemCounts{} || len(c.Errors) > 0) {
		return invalid("ended", "want a bucket that has ended or is given back, and items of one that has ended")
	}
	errs, err := c.errors()
	if err == nil {
		err = events.CheckItems(c.items(), errs)
	}
	if err != nil {
		return invalid("errors", "want some that can be read, within their limits: "+err.Error())
	}
	return nil
}

func (c *Bucket) items() events.ItemCounts {
	return events.ItemCounts{Done: c.Done, Failed: c.Failed, Skipped: c.Skipped}
}

func (c *Bucket) errors() ([]events.ItemError, error) { return decodeErrors(c.Errors) }

// Limits implements command.Command.
func (c *Permits) Limits() error {
	if n := len(c.Items); n < 1 || n > events.MaxPermits {
		return &task.LimitError{Field: "items", Limit: events.MaxPermits, Got: int64(n)}
	}
	if c.Counter == "" {
		return invalid("counter", "want a name")
	}
	return cmp.Or(
		limitAttempt(c.Task, c.Node),
		limitText("counter", c.Counter, events.MaxCounterBytes),
		limitText("reason", c.Reason, workledger.MaxMessageBytes),
	)
}

// Limits implements command.Command.
func (c *Reset) Limits() error {
	token := c.What == int64(events.ResetToken)
	switch {
	case !token && c.What != int64(events.ResetAll) && c.What != int64(events.ResetThresholds):
		return invalid("what", "want all, thresholds or token")
	case token && c.Reason == "":
		return invalid("reason", "want one: what is between the tokens is left out, or done again")
	case !token && (len(c.Token) > 0 || c.Reason != ""):
		return invalid("token", "want none but to set it")
	}
	return cmp.Or(
		limitText("id", c.Task, events.MaxIDBytes),
		limitToken(c.Token),
		limitText("reason", c.Reason, events.MaxNameBytes),
	)
}

// Limits implements command.Command.
func (c *Rerun) Limits() error { return limitText("id", c.Task, events.MaxIDBytes) }

// Limits implements command.Command.
func (c *Show) Limits() error { return limitText("id", c.Task, events.MaxIDBytes) }

func invalid(field, problem string) error { return &store.InvalidError{Field: field, Problem: problem} }

func limitAttempt(id, node string) error {
	return cmp.Or(limitText("id", id, events.MaxIDBytes), limitText("node", node, events.MaxNameBytes))
}

func limitText(field, text string, limit int) error {
	if !utf8.ValidString(text) {
		return invalid(field, "want UTF-8")
	}
	if len(text) > limit {
		return &task.LimitError{Field: field, Limit: int64(limit), Got: int64(len(text))}
	}
	return nil
}
