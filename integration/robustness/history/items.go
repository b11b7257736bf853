package history

import "taskledger/item"

// ItemCall is one call of a client of a task store, which asks for one of Update, Claim, Read and Group.
type ItemCall struct {
	Store  string
	Call   int64
	Return int64  // 0 = never
	Answer Answer // OK; Refused: nothing was changed; Unknown: it may have been done, or be done later

	Update *item.Update
	Claim  *item.Claim
	Read   []int64 // a linear question for the items of these ids
	Group  string  // a linear question for all items of this group, also for those that are not available

	MaxClaims int64 // of a worker: what it has claimed so often, and is not done with, it gives up; 0 = who asks is none

	Items        []item.Item    // of OK: what it was told. Of Read: those that are there
	Pages        []int          // of Group: how many of the Items each answer but the last had, each of a moment of its own
	Problems     []item.Problem // of Refused: those of an item.ConflictError; none: it was refused for another reason
	OtherRequest bool           // of Refused: its key stands for another request
	Error        string         // for people
}

// Changes reports whether the call asks for something to be changed.
func (c *ItemCall) Changes() bool {
	u := c.Update
	return c.Claim != nil || u != nil && len(u.Deletes)+len(u.Changes)+len(u.Adds) > 0
}
