package stores

import (
	"errors"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/item"
	"taskledger/projection/items"
	"taskledger/projection/steady"
)

// Decide applies the update, or says why its items do not allow it. While the store is almost full, an update that
// adds more than it removes is refused.
func (c *Update) Decide(d *command.Decider) command.Answer {
	asked, all := c.Asked(), items.Of(d.State)
	asked.Age = time.Duration(older(c.Age, d.UnderWay))
	request := asked.RequestID()
	made, err := all.DecideUpdate(c.Store, asked, request, d.Now)
	if refusal, refused := refused(d, made.Problems, err); refused {
		return refusal
	}
	msg := updated{First: made.First, Now: int64(made.Now)}
	for i := range asked.Changes {
		if asked.Changes[i].Group == "" {
			msg.name(groupOf(all, c.Store, &made, i, len(asked.Adds)))
		}
	}
	if err := msg.fits(); err != nil {
		return command.Refused(command.AnswerInvalid, "%v", err)
	}
	if refusal, refused := emit(d, &made, request, weight(all, c.Store, asked, &made)); refused {
		return refusal
	}
	return command.Answer{Data: msg.encode()}
}

// groupOf returns the group of a change that named none. For a request that was answered before it is known until
// somebody changes the item again.
func groupOf(all *items.Stores, store string, made *items.Decision, change, adds int) string {
	if !made.Repeated {
		return made.Changed[change].Group.Name
	}
	if is := all.Item(store, made.First+uint64(adds+change)); is != nil {
		return is.Group.Name
	}
	return ""
}

// weight returns the bytes that an update adds to a store; negative where it shrinks.
func weight(all *items.Stores, store string, u *item.Update, made *items.Decision) (n int) {
	if made.Repeated {
		return 0
	}
	for i := range u.Adds {
		n += itemBytes + len(u.Adds[i].Group) + len(u.Adds[i].Data)
	}
	for i := range u.Changes {
		if !u.Changes[i].Keep {
			n += len(u.Changes[i].Data) - dataLen(made.Changed[i])
		}
	}
	for _, id := range u.Deletes {
		was := all.Item(store, uint64(id))
		n -= itemBytes + len(was.Group.Name) + dataLen(was)
	}
	return n
}

func dataLen(i *items.Item) int { return max(len(i.Data)-1, 0) } // without the codec

// Decide gives the caller an item, if one is available.
func (c *Claim) Decide(d *command.Decider) command.Answer {
	asked := c.Asked()
	asked.Age = time.Duration(older(c.Age, d.UnderWay))
	request := asked.RequestID()
	made, err := items.Of(d.State).DecideClaim(c.Store, asked, request, c.Random, d.Now)
	if refusal, refused := refused(d, made.Problems, err); refused {
		return refusal
	}
	if made.First == 0 {
		return command.Answer{}
	}
	if refusal, refused := emit(d, &made, request, 0); refused {
		return refusal
	}
	msg := claimed{ID: made.First, Now: int64(made.Now)}
	return command.Answer{Data: msg.encode()}
}

// refused says why nothing is to be applied.
func refused(d *command.Decider, problems []item.Problem, err error) (refusal command.Answer, refused bool) {
	why, is := errors.AsType[*items.Refusal](err)
	switch {
	case is && why.OtherRequest:
		return command.Refused(command.AnswerKeyUsed, "%v", why), true
	case is && why.Forgotten:
		return command.Refused(command.AnswerForgotten, "%v", why), true
	case is:
		a := command.Overload("%s", why.Full)
		if why.Wait > 0 {
			a.Number = int64(min(why.Wait, steady.MaxGap)) // that much is counted until the next entry
			d.Counts = true
		}
		return a, true
	case err != nil:
		return command.Refused(command.AnswerInvalid, "%v", err), true
	case len(problems) > 0:
		return command.Answer{Code: command.AnswerConflict, Data: encodeProblems(problems)}, true
	}
	return command.Answer{}, false
}

// emit records what was decided. The first event names the request.
func emit(d *command.Decider, made *items.Decision, request string, weight int) (refusal command.Answer, refused bool) {
	if len(made.Events) == 0 {
		return command.Answer{}, false
	}
	if refusal, refused := d.Grows(weight); refused {
		return refusal, true
	}
	for i := range made.Events {
		e := &made.Events[i]
		d.EmitFollowing(e.Item.Task, e.Item.Seq, e.Item.Prev, request, e.Body)
		request = ""
	}
	return command.Answer{}, false
}
