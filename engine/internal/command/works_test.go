package command_test

import (
	"fmt"
	"math"

	"pgregory.net/rapid"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/works"
	"taskledger/events"
	"taskledger/work/workledger"
)

// workAs makes a task, starts it on a node, and plans a work of one bucket, which has a counter. It returns the
// attempt.
func workAs(l *journalDriver, id events.TaskID, node string) uint64 {
	c := l.ask(events.Policy{})
	c.Task = id
	l.decide(c)
	l.start(id, node)
	started := uint64(l.state.Task(id).Started)
	l.decide(&works.Plan{
		Task:    string(id),
		Started: started,
		Node:    node,
		Partitions: works.EncodePartitions([]events.WorkPartition{{
			ID:         "p",
			Buckets:    1,
			Workers:    1,
			Threads:    1,
			Thresholds: []events.WorkThreshold{{Counter: longCounter, Limit: events.MaxPermits - 1}},
		}}),
	})
	return started
}

// bucketAs is workAs of an attempt that has its bucket.
func bucketAs(l *journalDriver, id events.TaskID, node string) uint64 {
	started := workAs(l, id, node)
	l.decide(&works.Begin{Task: string(id), Started: started, Node: node, Partition: 1})
	l.decide(&works.Bucket{Task: string(id), Started: started, Node: node, Want: true})
	return started
}

// streamAs is bucketAs of a stream.
func streamAs(l *journalDriver, id events.TaskID, node string) uint64 {
	c := l.ask(events.Policy{})
	c.Task = id
	l.decide(c)
	l.start(id, node)
	started := uint64(l.state.Task(id).Started)
	l.decide(&works.Plan{
		Task:    string(id),
		Started: started,
		Node:    node,
		Partitions: works.EncodePartitions([]events.WorkPartition{{
			ID:      "p",
			Buckets: 1,
			Workers: 1,
			Threads: 1,
			Form:    events.FormPrecise,
		}}),
	})
	l.decide(&works.Begin{Task: string(id), Started: started, Node: node, Partition: 1})
	l.decide(&works.Bucket{Task: string(id), Started: started, Node: node, Want: true})
	return started
}

// endedAs is bucketAs of a task that has ended, and whose bucket had a failed item.
func endedAs(l *journalDriver, id events.TaskID) {
	started := bucketAs(l, id, "n-1")
	l.decide(&works.Bucket{Task: string(id), Started: started, Node: "n-1", Ended: 1, Failed: 1})
	l.decide(&command.Complete{Task: id, Started: events.Ref(started), Node: "n-1"})
}

var longCounter = form[*works.Permits](0).Counter

// workCases makes the commands of works in a form that adds most to an entry.
var workCases = map[string]func(*journalDriver) command.Command{
	"plan": func(l *journalDriver) command.Command {
		c := form[*works.Plan](0)
		s := l.ask(events.Policy{})
		s.Task = events.TaskID(c.Task)
		l.decide(s)
		l.start(s.Task, c.Node)
		c.Started = uint64(l.state.Task(s.Task).Started)
		return c
	},
	"begin": func(l *journalDriver) command.Command {
		c := form[*works.Begin](0)
		c.Task, c.Partition = form[*works.Plan](0).Task, 1
		c.Started = workAs(l, events.TaskID(c.Task), c.Node)
		return c
	},
	"bucket": func(l *journalDriver) command.Command {
		c := form[*works.Bucket](0)
		c.Task, c.Ended = form[*works.Plan](0).Task, 1
		c.Started = bucketAs(l, events.TaskID(c.Task), c.Node)
		return c
	},
	"move of a stream": func(l *journalDriver) command.Command {
		c := form[*works.Move](0)
		c.Task = form[*works.Plan](0).Task
		c.Started = streamAs(l, events.TaskID(c.Task), c.Node)
		return c
	},
	"move of a hold": func(l *journalDriver) command.Command {
		move := form[*works.Move](0)
		move.Task = form[*works.Plan](0).Task
		move.Started = streamAs(l, events.TaskID(move.Task), move.Node)
		l.decide(move)
		c := form[*works.Held](0)
		hold := events.HoldID(events.TaskID(move.Task), 1)
		l.decide(&command.Operate{Task: hold, Do: command.DoResume})
		l.start(hold, c.Node)
		c.Task, c.Started, c.From = string(hold), uint64(l.state.Task(hold).Started), 0
		return c
	},
	"permits that trip": func(l *journalDriver) command.Command {
		c := form[*works.Permits](0)
		c.Task = form[*works.Plan](0).Task
		c.Started = bucketAs(l, events.TaskID(c.Task), c.Node)
		return c
	},
	"reset": func(l *journalDriver) command.Command {
		c := form[*works.Reset](0)
		c.Task, c.Seen = form[*works.Plan](0).Task, 0
		endedAs(l, events.TaskID(c.Task))
		return c
	},
	"rerun": func(l *journalDriver) command.Command {
		c := form[*works.Rerun](0)
		c.Task, c.Seen = form[*works.Plan](0).Task, 0
		endedAs(l, events.TaskID(c.Task))
		return c
	},
}

func longWork(i int) events.TaskID {
	return events.TaskID(fmt.Sprintf("%0*d", events.MaxWorkParentBytes, i))
}

// workBatches makes the commands of works for a batch.
var workBatches = map[string]func(*journalDriver, int) command.Command{
	"plans of works": func(l *journalDriver, i int) command.Command {
		id := longWork(i)
		return &works.Plan{
			Task:    string(id),
			Started: uint64(startedAs(l, id)),
			Node:    "n-1",
			Partitions: works.EncodePartitions([]events.WorkPartition{{
				ID:       "p",
				Buckets:  events.MaxBuckets,
				Workers:  events.MaxWorkers,
				Threads:  1,
				Segments: make([]byte, 1000),
			}}),
		}
	},
	"beginnings of partitions": func(l *journalDriver, i int) command.Command {
		id := longWork(i)
		started := workAs(l, id, "n-1")
		return &works.Begin{
			Task:      string(id),
			Started:   started,
			Node:      "n-1",
			Partition: 1,
			Counted:   true,
			Expected:  math.MaxUint64,
		}
	},
	"buckets": func(l *journalDriver, i int) command.Command {
		c := form[*works.Bucket](0)
		c.Task, c.Node, c.Ended = string(longWork(i)), "n-1", 1
		c.Started = bucketAs(l, longWork(i), "n-1")
		return c
	},
	"permits": func(l *journalDriver, i int) command.Command {
		c := form[*works.Permits](0)
		c.Task, c.Node = string(longWork(i)), "n-1"
		c.Started = bucketAs(l, longWork(i), "n-1")
		return c
	},
	"moves of streams": func(l *journalDriver, i int) command.Command {
		c := &works.Move{Task: string(longWork(i)), Node: "n-1", Token: []byte("t"), Done: 1}
		c.Started = streamAs(l, longWork(i), "n-1")
		var all []workledger.Hold
		for n := range 5 {
			all = append(all, workledger.Hold{Key: fmt.Sprint(n), Parked: true, Change: workledger.HeldChange{Data: []byte("1")}})
		}
		c.Holds = works.EncodeHolds(all)
		return c
	},
	"moves of holds": func(l *journalDriver, i int) command.Command {
		id := longWork(i)
		hold := workledger.Hold{Key: "k", Parked: true, Change: workledger.HeldChange{Data: []byte("1")}}
		move := &works.Move{Task: string(id), Node: "n-1", Holds: works.EncodeHolds([]workledger.Hold{hold})}
		move.Started = streamAs(l, id, "n-1")
		l.decide(move)
		l.decide(&command.Operate{Task: events.HoldID(id, 1), Do: command.DoResume})
		l.start(events.HoldID(id, 1), "n-1")
		started := l.state.Task(events.HoldID(id, 1)).Started
		return &works.Held{Task: string(events.HoldID(id, 1)), Started: uint64(started), Node: "n-1", Processed: 1}
	},
	"resets of works": func(l *journalDriver, i int) command.Command {
		endedAs(l, longWork(i))
		return &works.Reset{Task: string(longWork(i)), What: int64(events.ResetAll)}
	},
	"reruns of works": func(l *journalDriver, i int) command.Command {
		endedAs(l, longWork(i))
		return &works.Rerun{Task: string(longWork(i))}
	},
}

// drawWorks draws a command of works, nil for a number of another.
func drawWorks(t *rapid.T, c command.Command) command.Command {
	number := func(name string) uint64 { return rapid.Uint64().Draw(t, name) }
	id, node := genText.Draw(t, "id"), genText.Draw(t, "node")
	switch c.(type) {
	case *works.Plan:
		return &works.Plan{
			Task:       id,
			Started:    number("started"),
			Node:       node,
			Parent:     genText.Draw(t, "parent"),
			Definition: genText.Draw(t, "definition"),
			Partitions: genPayload.Draw(t, "partitions"),
		}
	case *works.Begin:
		return &works.Begin{
			Task:      id,
			Started:   number("started"),
			Node:      node,
			Partition: rapid.Int64().Draw(t, "partition"),
			Counted:   rapid.Bool().Draw(t, "counted"),
			Expected:  number("expected"),
		}
	case *works.Bucket:
		return &works.Bucket{
			Task:     id,
			Started:  number("started"),
			Node:     node,
			Ended:    number("ended"),
			Done:     number("done"),
			Failed:   number("failed"),
			Skipped:  number("skipped"),
			Errors:   genPayload.Draw(t, "errors"),
			Returned: number("returned"),
			Want:     rapid.Bool().Draw(t, "want"),
		}
	case *works.Permits:
		return &works.Permits{
			Task:    id,
			Started: number("started"),
			Node:    node,
			Counter: genText.Draw(t, "counter"),
			Reason:  genText.Draw(t, "reason"),
			Items:   rapid.SliceOfN(rapid.Uint64(), 1, 5).Draw(t, "items"),
		}
	case *works.Reset:
		return &works.Reset{
			Task:   id,
			What:   rapid.Int64().Draw(t, "what"),
			Seen:   number("seen"),
			Token:  genPayload.Draw(t, "token"),
			Reason: genText.Draw(t, "reason"),
		}
	case *works.Position:
		return &works.Position{Task: id, Started: number("started"), Node: node, Linear: rapid.Bool().Draw(t, "linear")}
	case *works.Left:
		return &works.Left{Task: id, Started: number("started"), Node: node, Linear: rapid.Bool().Draw(t, "linear")}
	case *works.Move:
		return &works.Move{
			Task:    id,
			Started: number("started"),
			Node:    node,
			Token:   genPayload.Draw(t, "token"),
			Done:    number("done"),
			Failed:  number("failed"),
			Skipped: number("skipped"),
			Errors:  genPayload.Draw(t, "errors"),
			Open:    number("open"),
			Oldest:  rapid.Int64().Draw(t, "oldest"),
			Holds:   genPayload.Draw(t, "holds"),
		}
	case *works.Held:
		return &works.Held{
			Task:      id,
			Started:   number("started"),
			Node:      node,
			From:      number("from"),
			Processed: number("processed"),
		}
	case *works.Rerun:
		return &works.Rerun{Task: id, Seen: number("seen")}
	case *works.Show:
		return &works.Show{Task: id, Plan: rapid.Bool().Draw(t, "plan"), Linear: rapid.Bool().Draw(t, "linear")}
	}
	return nil
}
