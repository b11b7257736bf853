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
	Scan                       int64  // so many tasks at most; 0 = as many as the budget of the owner allows
	Cluster                    string // whose cursor names the place; "" = no cursor does
	Work                       bool   // tasks that have a work alone
	Tag                        string
}

// Optional implements message.Optional.
func (*List) Optional() int { return 2 }

// ListOf asks for the tasks of a filter from a place on.
func ListOf(f task.Filter, from listing.Place, limit, scan int, cluster string) *List {
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
		Scan:        int64(scan),
		Cluster:     cluster,
		Work:        f.Work,
		Tag:         f.Tag,
	}
}

func (*List) Op() uint64 { return opList }

func (c *List) Size() int {
	return 160 + len(c.Behavior) + len(c.Affinity) + len(c.Prefix) + len(c.Node) + len(c.Creator) + len(c.Cluster) + len(c.Tag)
}

func (c *List) Limits() error {
	if c.Status > uint64(task.Failure) || c.Substatus > uint64(task.SubCancelled) {
		problem := fmt.Sprintf("there is no status %d, or no substatus %d", c.Status, c.Substatus)
		return &store.InvalidError{Field: "filter", Problem: problem}
	}
	return cmp.Or(
		limitBehavior(c.Behavior),
		atMost("affinity", len(c.Affinity), events.MaxIDBytes),
		atMost("affinity-prefix", len(c.Prefix), events.MaxIDBytes),
		limitNode(c.Node),
		atMost("creator", len(c.Creator), events.MaxNameBytes),
		atMost("cluster", len(c.Cluster), events.MaxNameBytes),
		atMost("tag", len(c.Tag), events.MaxTagBytes),
	)
}

// Filter returns the filter of the list.
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
		Work:           c.Work,
		Tag:            c.Tag,
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
	Scanned int64
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
	if p.Scanned < 0 || p.Scanned > 1<<30 {
		return fmt.Errorf("page that looked at %d tasks", p.Scanned)
	}
	return nil
}

// EncodePage answers a List with as many of the tasks that were found as fit, from the first on, and the last
// sightings of their nodes.
func EncodePage(found listing.Found, seen Sightings, cluster string) []byte {
	msg := page{
		Before:  uint64(found.Next.Before),
		Until:   int64(found.Next.Until),
		Done:    found.Done,
		Scanned: int64(found.Looked),
		Cluster: cluster,
		Head:    found.Head,
	}
	size := 0
	for i, t := range found.Tasks {
		if size >= MaxAnswerBytes/2 {
			last := found.Tasks[i-1]
			msg.Before, msg.Until, msg.Done = uint64(last.Created), int64(last.CreatedAt), false
			break
		}
		task := EncodeTask(t)
		msg.Tasks, msg.Seen = append(msg.Tasks, task), append(msg.Seen, int64(seen.Of(t)))
		size += len(task)
	}
	return message.Encode(msg)
}

// Page is a decoded answer to a List.
type Page struct {
	listing.Part
	Cluster string
}

// DecodePage reads what EncodePage writes.
func DecodePage(data []byte) (p Page, err error) {
	msg, err := ReadLenient[page](data)
	if err != nil {
		return p, err
	}
	p.Cluster, p.Head, p.Done, p.Looked = msg.Cluster, msg.Head, msg.Done, int(msg.Scanned)
	p.Next = listing.Place{Before: events.Ref(msg.Before), Until: events.Millis(msg.Until)}
	p.Tasks = make([]projection.Task, len(msg.Tasks))
	for i, data := range msg.Tasks {
		if p.Tasks[i], err = DecodeTask(data); err != nil {
			return Page{}, err
		}
		p.Tasks[i].Sight(events.Millis(msg.Seen[i]))
	}
	return p, nil
}
