package stores

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"taskledger/api"
	"taskledger/item"
	"taskledger/store"
	"taskledger/task"
)

func (f *front) update(c *api.Call, name string) error {
	var body storeUpdate
	if err := read(c, &body); err != nil {
		return err
	}
	u, err := body.request()
	if err != nil {
		return err
	}
	if u.Key, err = c.Key(); err != nil {
		return err
	}
	made, err := f.stores.UpdateItems(c.Context(), name, u)
	if err != nil {
		return conflict(c, err)
	}
	all := make([]storeTask, len(made))
	for i := range made {
		all[i] = taskOf(&made[i])
		if at := i - len(u.Adds); at >= 0 && u.Changes[at].Keep {
			all[i].Data, all[i].Data64, all[i].Keep = nil, nil, true
		}
	}
	return c.JSON(http.StatusOK, storeTasks{all})
}

func (f *front) claim(c *api.Call, name string) error {
	var body storeClaim
	if err := read(c, &body); err != nil {
		return err
	}
	q := &item.Claim{Client: body.ClientID, Group: string(body.Group), Depends: body.Depends}
	var err error
	if q.Duration, err = millis("duration", body.Duration, item.MinDuration, item.MaxDuration); err != nil {
		return err
	}
	if q.Wait, err = millis("wait", body.Wait, 0, item.MaxWait); err != nil {
		return err
	}
	if q.Key, err = c.Key(); err != nil {
		return err
	}
	it, err := f.claimed(c, name, q)
	if err != nil {
		return conflict(c, err)
	}
	all := storeTasks{[]storeTask{}}
	if it != nil {
		all.Tasks = append(all.Tasks, taskOf(it))
	}
	return c.JSON(http.StatusOK, all)
}

// claimed claims an item; a server that drains answers who waits as if nothing came.
func (f *front) claimed(c *api.Call, name string, q *item.Claim) (*item.Item, error) {
	ctx, cancel := c.Parked(q.Wait)
	defer cancel()
	it, err := f.stores.ClaimItem(ctx, name, q)
	if errors.Is(err, api.ErrEnds) && !errors.Is(err, task.ErrUnknown) && c.Drains() {
		return nil, nil
	}
	return it, err
}

// read decodes a body that has no more elements than there may be.
func read(c *api.Call, into any) error {
	body, err := c.Body()
	if err != nil {
		return err
	}
	if err := few(body); err != nil {
		return err
	}
	return c.Decode(body, into)
}

// millis is a time in milliseconds within bounds.
func millis(field string, n int64, least, most time.Duration) (time.Duration, error) {
	if n < least.Milliseconds() || n > most.Milliseconds() {
		return 0, &store.InvalidError{Field: field, Problem: fmt.Sprintf("%d: want %d to %d, in milliseconds", n, least.Milliseconds(), most.Milliseconds())}
	}
	return time.Duration(n) * time.Millisecond, nil
}

// conflict answers with why the items of a store do not allow what was asked, one text for each problem.
func conflict(c *api.Call, err error) error {
	refused, is := errors.AsType[*item.ConflictError](err)
	if !is {
		return err
	}
	texts := make([]string, len(refused.Problems))
	for i, p := range refused.Problems {
		texts[i] = p.String()
	}
	return c.JSON(http.StatusConflict, storeErrors{texts})
}
