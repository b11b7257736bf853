package stores

import (
	"fmt"
	"slices"

	"taskledger/engine/internal/command"
	"taskledger/events"
	"taskledger/internal/message"
	"taskledger/internal/wire"
	"taskledger/item"
	"taskledger/projection/items"
	"taskledger/store"
)

// updated answers an Update: its items are made of it and of the request.
type updated struct {
	First  uint64 // the id of the first item that was added or changed; the others follow
	Now    int64  // ms; what times were counted from
	Groups []string
	Which  []uint64 // of Groups, of each change that named none
}

// name adds the group of a change that named none.
func (u *updated) name(group string) {
	at := len(u.Groups) - 1
	if at < 0 || u.Groups[at] != group {
		if at = slices.Index(u.Groups, group); at < 0 {
			at = len(u.Groups)
			u.Groups = append(u.Groups, group)
		}
	}
	u.Which = append(u.Which, uint64(at))
}

// fits refuses groups that take more than an answer has room for.
func (u *updated) fits() error {
	n := 0
	for _, g := range u.Groups {
		if n += len(g) + 3; n > maxAnsweredGroups {
			const problem = "the names of the groups of those that name none, and 3 bytes for each, " +
				"exceed the limit of %d bytes: name them in some"
			return &store.InvalidError{Field: "updates", Problem: fmt.Sprintf(problem, maxAnsweredGroups)}
		}
	}
	return nil
}

const updatedFields = 4

// encode is written out, as is that of claimed: every update and claim has one.
func (u *updated) encode() []byte {
	n := 32 + 9*len(u.Which)
	for _, g := range u.Groups {
		n += 5 + len(g)
	}
	w := wire.Writer{B: make([]byte, 0, n)}
	w.Array(updatedFields)
	w.Uint(u.First)
	w.Int(u.Now)
	w.Array(len(u.Groups))
	for _, g := range u.Groups {
		w.Text(g)
	}
	w.Array(len(u.Which))
	for _, at := range u.Which {
		w.Uint(at)
	}
	return w.B
}

func decodeUpdated(data []byte) (u updated, err error) {
	err = command.DecodeLenient(data, func(r *wire.Reader) {
		more := r.ArrayFrom(updatedFields)
		u = updated{First: r.Uint(), Now: r.Int()}
		u.Groups = make([]string, command.ArrayOf(r, data, 1))
		for i := range u.Groups {
			u.Groups[i] = r.Text()
		}
		u.Which = make([]uint64, command.ArrayOf(r, data, 1))
		for i := range u.Which {
			u.Which[i] = r.Uint()
		}
		r.Skip(more)
	})
	return u, err
}

// DecodeUpdated returns the items that an update made: first those added, then those changed. The data of a change
// that keeps them are nil. The group of a change that named none is "" if the update was answered before, and its
// item has been changed since.
func DecodeUpdated(u *item.Update, data []byte) ([]item.Item, error) {
	msg, err := decodeUpdated(data)
	if err != nil {
		return nil, err
	}
	now, id := events.Millis(msg.Now), int64(msg.First)
	made := make([]item.Item, 0, len(u.Adds)+len(u.Changes))
	for i := range u.Adds {
		made = append(made, item.Item{
			ID:    id,
			Group: u.Adds[i].Group,
			At:    u.Adds[i].At.From(now),
			Owner: u.Client,
			Data:  u.Adds[i].Data,
		})
		id++
	}
	for i := range u.Changes {
		is := item.Item{
			ID:    id,
			Group: u.Changes[i].Group,
			At:    u.Changes[i].At.From(now),
			Owner: u.Client,
			Data:  u.Changes[i].Data,
		}
		if is.Group == "" {
			if len(msg.Which) == 0 || msg.Which[0] >= uint64(len(msg.Groups)) {
				return nil, fmt.Errorf("answer to an update that does not name the group of change %d", i)
			}
			is.Group, msg.Which = msg.Groups[msg.Which[0]], msg.Which[1:]
		}
		made = append(made, is)
		id++
	}
	return made, nil
}

// claimed answers a Claim that got an item.
type claimed struct {
	ID     uint64
	Now    int64 // ms; from then on the item is the caller's
	Whole  bool  // the data are there
	Data   []byte
	Claims uint64 // of the item, with the data
}

const claimedFields = 5

func (c *claimed) encode() []byte {
	w := wire.Writer{B: make([]byte, 0, 32+len(c.Data))}
	w.Array(claimedFields)
	w.Uint(c.ID)
	w.Int(c.Now)
	w.Bool(c.Whole)
	w.Bytes(c.Data)
	w.Uint(c.Claims)
	return w.B
}

func decodeClaimed(data []byte) (c claimed, err error) {
	err = command.DecodeLenient(data, func(r *wire.Reader) {
		more := r.ArrayFrom(claimedFields)
		c = claimed{
			ID:     r.Uint(),
			Now:    r.Int(),
			Whole:  r.Bool(),
			Data:   r.Bytes(),
			Claims: r.Uint(),
		}
		r.Skip(more)
	})
	return c, err
}

// DecodeClaimed returns the item that a claim got. whole reports that it has its data; else they have to be asked for.
func DecodeClaimed(q *item.Claim, data []byte) (it item.Item, whole bool, err error) {
	msg, err := decodeClaimed(data)
	it = item.Item{
		ID:     int64(msg.ID),
		Group:  q.Group,
		At:     events.Millis(msg.Now).Add(q.Duration),
		Owner:  q.Client,
		Claims: int64(msg.Claims),
		Data:   msg.Data,
	}
	return it, msg.Whole, err
}

// maxClaimedBytes bounds the data that go with the answers to a batch of claims.
const maxClaimedBytes = command.MaxAnswerBytes / 2

// WithData returns the answers to decided commands with the data of claimed items, as far as they fit, which an
// entry does not hold again. It calls got with every claim that got an item.
func WithData(
	all *items.Stores, commands []command.Command, answers []command.Answer, got func(*Claim),
) []command.Answer {
	copied, size := false, 0
	for i := range min(len(answers), len(commands)) {
		c, is := commands[i].(*Claim)
		if !is || answers[i].Code != command.AnswerOK || answers[i].Data == nil {
			continue
		}
		got(c)
		msg, err := decodeClaimed(answers[i].Data)
		if err != nil {
			continue
		}
		it := all.Item(c.Store, msg.ID)
		if it == nil || size+len(it.Data) > maxClaimedBytes {
			continue
		}
		size += len(it.Data)
		if !copied {
			answers, copied = slices.Clone(answers), true
		}
		msg.Whole, msg.Data, msg.Claims = true, dataOf(it), it.Claims
		answers[i].Data = msg.encode()
	}
	return answers
}

// dataOf returns the data of an item.
func dataOf(i *items.Item) []byte {
	data, _ := i.Data.Bytes() // the fold takes no others
	return data
}

// problem is an item.Problem that travels.
type problem struct {
	Field string
	ID    int64
	Text  string
	Kind  string
}

type problems struct{ All []problem }

// maxProblemBytes bounds the text of a problem: the answer is within the size of the command.
const maxProblemBytes = 100

func encodeProblems(found []item.Problem) []byte {
	msg := problems{make([]problem, len(found))}
	for i, p := range found {
		msg.All[i] = problem{
			Field: p.Field,
			ID:    p.ID,
			Text:  events.Head(p.Text, maxProblemBytes),
			Kind:  string(p.Kind),
		}
	}
	return message.Encode(msg)
}

// DecodeProblems reads why items do not allow a command.
func DecodeProblems(data []byte) ([]item.Problem, error) {
	msg, err := command.ReadLenient[problems](data)
	if err != nil {
		return nil, err
	}
	all := make([]item.Problem, len(msg.All))
	for i, p := range msg.All {
		all[i] = item.Problem{
			Field: p.Field,
			ID:    p.ID,
			Kind:  item.Kind(p.Kind),
			Text:  p.Text,
		}
	}
	return all, nil
}
