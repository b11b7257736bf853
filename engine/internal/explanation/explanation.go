// Package explanation says why a task does not run.
package explanation

import (
	"fmt"
	"slices"
	"strings"

	"taskledger/engine/internal/command"
	"taskledger/events"
	"taskledger/internal/message"
	"taskledger/store"
	"taskledger/task"
)

// Explanation says why a task is not running.
type Explanation struct {
	Task  events.TaskID
	Why   task.Reason
	Since events.Millis // 0 = not known
	Text  string

	// Substatus is the task's own; 0 = no owner that knows the task has answered.
	Substatus task.Substatus
}

// Encoded is the form in which an Explanation travels, without the task, which the caller knows.
type Encoded struct {
	Why   string
	Since int64 // ms
	Text  string

	Substatus uint64
}

// Answer is the answer that carries the explanation, and Decode reads it.
func (e Explanation) Answer() command.Answer {
	return command.Answer{Data: message.Encode(Encoded{
		Why:       string(e.Why),
		Since:     int64(e.Since),
		Text:      e.Text,
		Substatus: uint64(e.Substatus),
	})}
}

// Decode reads the explanation of a task.
func Decode(id events.TaskID, data []byte) (Explanation, error) {
	e, err := command.ReadLenient[Encoded](data)
	return Explanation{
		Task:      id,
		Why:       task.Reason(e.Why),
		Since:     events.Millis(e.Since),
		Text:      e.Text,
		Substatus: task.Substatus(e.Substatus),
	}, err
}

// OfReady explains why a task of a behavior that could run does not. free reports whether there is a slot for it.
func OfReady(nodes map[string]store.NodeInfo, behavior string, free func() bool) Explanation {
	var may, mayNot []string // names of nodes that run it
	for _, n := range nodes {
		limit, limited := n.Limits[behavior]
		switch {
		case n.Slots <= 0 || n.Draining || !slices.Contains(n.Behaviors, behavior):
		case limited && limit == 0:
			mayNot = append(mayNot, n.Name)
		default:
			may = append(may, n.Name)
		}
	}
	switch {
	case len(may)+len(mayNot) == 0:
		return Explanation{Why: task.WhyNoNode, Text: "no live node with slots runs " + behavior}
	case len(may) == 0:
		text := fmt.Sprintf("no node may run it: the limit of %s is 0 on %s", behavior, named(mayNot))
		return Explanation{Why: task.WhyNoNode, Text: text}
	case free():
		return Explanation{Why: task.WhyWaiting, Text: "it has just become due, and a slot is free: it starts next"}
	}
	text := fmt.Sprintf("it is ready and waits for a slot for %s on %s", behavior, named(may))
	return Explanation{Why: task.WhyWaiting, Text: text}
}

// named lists names, the first five at most.
func named(names []string) string {
	const most = 5
	slices.Sort(names)
	if more := len(names) - most; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), more)
	}
	return strings.Join(names, ", ")
}
