package command

import (
	"cmp"
	"fmt"

	"taskledger/events"
	"taskledger/internal/message"
	"taskledger/projection"
)

// List reads tasks in id order, those after an id that match a Filter of these fields.
type List struct {
	Status                   uint64 // a projection.Status
	Behavior, Affinity, Node string
	Limit                    int64
	After                    events.TaskID
	Substatus                uint64 // a projection.Substatus
}

var _ = register(opList, func() Command { return new(List) })

func (*List) Op() uint64 { return opList }

func (c *List) Size() int { return 64 + len(c.Behavior) + len(c.Affinity) + len(c.Node) + len(c.After) }

func (c *List) limits() error {
	return cmp.Or(limitBehavior(c.Behavior), atMost("affinity", len(c.Affinity), events.MaxIDBytes), limitNode(c.Node), limitID(c.After))
}

// Matches reports whether a task is one of those that are listed at a time.
func (c *List) Matches(t *projection.Task, now events.Millis) bool {
	if s, _ := t.Substatus(now); c.Substatus != 0 && c.Substatus != uint64(s) {
		return false
	}
	return (c.Status == 0 || c.Status == uint64(t.Status)) && (c.Behavior == "" || c.Behavior == t.Kind.Behavior) &&
		(c.Affinity == "" || c.Affinity == t.ID.Affinity()) && (c.Node == "" || c.Node == t.Node)
}

// MaxPage is the most tasks of one page of a list. A task of 30 bytes takes some hundred decoded.
const MaxPage = 1000

// page answers a List: the tasks, each encoded by itself, and whether there may be more after them.
type page struct {
	Tasks [][]byte
	Seen  []int64 // of each, Sightings.Of
	More  bool
}

// Check refuses more tasks than a page has, before any of them is decoded.
func (p *page) Check() error {
	if len(p.Seen) != len(p.Tasks) {
		return fmt.Errorf("page of %d tasks with %d sightings", len(p.Tasks), len(p.Seen))
	}
	if len(p.Tasks) > MaxPage {
		return fmt.Errorf("page of %d tasks, at most %d", len(p.Tasks), MaxPage)
	}
	return nil
}

// EncodePage answers a List with the tasks that fit, the first of those given, and when their nodes were seen, and tells whether there may be more.
func EncodePage(tasks []*projection.Task, seen Sightings, more bool) []byte {
	told := page{More: more}
	size := 0
	for _, t := range tasks {
		if size >= MaxAnswerBytes/2 {
			told.More = true
			break
		}
		task := EncodeTask(t)
		told.Tasks, told.Seen = append(told.Tasks, task), append(told.Seen, int64(seen.Of(t)))
		size += len(task)
	}
	return message.Encode(told)
}

// DecodePage reads what EncodePage writes.
func DecodePage(data []byte) (tasks []projection.Task, more bool, err error) {
	told, err := ReadTold[page](data)
	if err != nil {
		return nil, false, err
	}
	tasks = make([]projection.Task, len(told.Tasks))
	for i, data := range told.Tasks {
		if tasks[i], err = DecodeTask(data); err != nil {
			return nil, false, err
		}
		tasks[i].Sight(events.Millis(told.Seen[i]))
	}
	return tasks, told.More && len(tasks) > 0, nil
}
