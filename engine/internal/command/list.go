package command

import (
	"cmp"
	"fmt"

	"taskledger/events"
	"taskledger/internal/message"
	"taskledger/projection"
	"taskledger/projection/listing"
	"taskledger/store"
	"taskledger/task"
)

// List reads tasks that match a task.Filter of these fields, newest first, from a listing.Place on.
type List struct {
	Status                     uint64 // a task.Status
	Substatus                  uint64 // a task.Substatus
	Behavior, Affinity, Prefix string
	Node, Creator              string
	CreatedFrom, CreatedTo     int64 // events.Millis
	EndedFrom, EndedTo         int64
	Before                     uint64 // an events.Ref
	Until                      int64  // events.Millis
	Limit                      int64  // of tasks
	Look                       int64  // at so many tasks at most; 0 = at as many as the owner's turn has room for
	Cluster                    string // whose cursor names the place; "" = no cursor does
}

// ListOf asks for the tasks of a filter from a place on.
func ListOf(f task.Filter, from listing.Place, limit, look int, cluster string) *List {
	return &List{
		Status:      uint64(f.Status),
		Substatus:   uint64(f.Substatus),
		Behavior:    f.Behavior,
		Affinity:    f.Affinity,
		Prefix:      f.AffinityPrefix,
		Node:        f.Node,
		Creator:     f.Creator,
		CreatedFrom: int64(events.MillisOf(f.CreatedFrom)),
		CreatedTo:   int64(events.MillisOf(f.CreatedTo)),
		EndedFrom:   int64(events.MillisOf(f.EndedFrom)),
		EndedTo:     int64(events.MillisOf(f.EndedTo)),
		Before:      uint64(from.Before),
		Until:       int64(from.Until),
		Limit:       int64(limit),
		Look:        int64(look),
		Cluster:     cluster,
	}
}

func (*List) Op() uint64 { return opList }

func (c *List) Size() int {
	return 160 + len(c.Behavior) + len(c.Affinity) + len(c.Prefix) + len(c.Node) + len(c.Creator) + len(c.Cluster)
}

func (c *List) Limits() error {
	if c.Status > uint64(task.Failure) || c.Substatus > uint64(task.SubCancelled) {
		return &store.InvalidError{Field: "filter", Problem: fmt.Sprintf("there is no status %d, or no substatus %d", c.Status, c.Substatus)}
	}
	return cmp.Or(limitBehavior(c.Behavior), atMost("affinity", len(c.Affinity), events.MaxIDBytes), atMost("affinity-prefix", len(c.Prefix), events.MaxIDBytes),
		limitNode(c.Node), atMost("creator", len(c.Creator), events.MaxNameBytes), atMost("cluster", len(c.Cluster), events.MaxNameBytes))
}

// Filter is that of the list.
func (c *List) Filter() task.Filter {
	return task.Filter{
		Status:         task.Status(c.Status),
		Substatus:      task.Substatus(c.Substatus),
		Behavior:       c.Behavior,
		Affinity:       c.Affinity,
		AffinityPrefix: c.Prefix,
		Node:           c.Node,
		Creator:        c.Creator,
		CreatedFrom:    events.Millis(c.CreatedFrom).Time(),
		CreatedTo:      events.Millis(c.CreatedTo).Time(),
		EndedFrom:      events.Millis(c.EndedFrom).Time(),
		EndedTo:        events.Millis(c.EndedTo).Time(),
	}
}

// From is the place from which the list is to go on.
func (c *List) From() listing.Place {
	return listing.Place{Before: events.Ref(c.Before), Until: events.Millis(c.Until)}
}

// MaxPage is the most tasks of one page of a list. A task of 30 bytes takes some hundred decoded.
const MaxPage = 1000

// page answers a List: the tasks, each encoded by itself, and where the list goes on.
type page struct {
	Tasks   [][]byte
	Seen    []int64 // of each, Sightings.Of
	Before  uint64
	Until   int64
	Done    bool
	Looked  int64
	Cluster string
	Head    uint64
}

// Check refuses more tasks than a page has, before any of them is decoded.
func (p *page) Check() error {
	if len(p.Seen) != len(p.Tasks) {
		return fmt.Errorf("page of %d tasks with %d sightings", len(p.Tasks), len(p.Seen))
	}
	if len(p.Tasks) > MaxPage {
		return fmt.Errorf("page of %d tasks, at most %d", len(p.Tasks), MaxPage)
	}
	if p.Looked < 0 || p.Looked > 1<<30 {
		return fmt.Errorf("page that looked at %d tasks", p.Looked)
	}
	return nil
}

// EncodePage answers a List with the tasks that fit of what was found, the first of them, and when their nodes were seen.
func EncodePage(found listing.Found, seen Sightings, cluster string) []byte {
	told := page{
		Before:  uint64(found.Next.Before),
		Until:   int64(found.Next.Until),
		Done:    found.Done,
		Looked:  int64(found.Looked),
		Cluster: cluster,
		Head:    found.Head,
	}
	size := 0
	for i, t := range found.Tasks {
		if size >= MaxAnswerBytes/2 {
			last := found.Tasks[i-1]
			told.Before, told.Until, told.Done = uint64(last.Created), int64(last.CreatedAt), false
			break
		}
		task := EncodeTask(t)
		told.Tasks, told.Seen = append(told.Tasks, task), append(told.Seen, int64(seen.Of(t)))
		size += len(task)
	}
	return message.Encode(told)
}

// Page is what EncodePage has written.
type Page struct {
	listing.Part
	Cluster string
}

// DecodePage reads what EncodePage writes.
func DecodePage(data []byte) (p Page, err error) {
	told, err := ReadLenient[page](data)
	if err != nil {
		return p, err
	}
	p.Cluster, p.Head, p.Done, p.Looked, p.Next = told.Cluster, told.Head, told.Done, int(told.Looked), listing.Place{Before: events.Ref(told.Before), Until: events.Millis(told.Until)}
	p.Tasks = make([]projection.Task, len(told.Tasks))
	for i, data := range told.Tasks {
		if p.Tasks[i], err = DecodeTask(data); err != nil {
			return Page{}, err
		}
		p.Tasks[i].Sight(events.Millis(told.Seen[i]))
	}
	return p, nil
}
