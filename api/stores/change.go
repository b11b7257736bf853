package stores

import (
	"errors"
	"net/http"
	"time"

	"taskledger/api"
	"taskledger/api/stores/form"
	"taskledger/item"
	"taskledger/task"
)

func (f *front) update(c *api.Call, name string) error {
	var body form.Update
	if err := read(c, &body); err != nil {
		return err
	}
	u, err := body.Request()
	if err != nil {
		return err
	}
	if err := repeated(c, u); err != nil {
		return err
	}
	made, err := f.stores.Update(c.Context(), name, u)
	if err != nil {
		return conflict(c, err)
	}
	all := make([]form.Task, len(made))
	for i := range made {
		if at := i - len(u.Adds); at >= 0 && u.Changes[at].Keep {
			all[i] = form.Kept(&made[i])
		} else {
			all[i] = form.TaskOf(&made[i])
		}
	}
	return c.JSON(http.StatusOK, form.Tasks{Tasks: all})
}

func (f *front) claim(c *api.Call, name string) error {
	var body form.Claim
	if err := read(c, &body); err != nil {
		return err
	}
	q, err := body.Request()
	if err != nil {
		return err
	}
	if q.Key, q.Age, err = repetition(c); err != nil {
		return err
	}
	it, err := f.claimed(c, name, q)
	if err != nil {
		return conflict(c, err)
	}
	all := form.Tasks{Tasks: []form.Task{}}
	if it != nil {
		all.Tasks = append(all.Tasks, form.TaskOf(it))
	}
	return c.JSON(http.StatusOK, all)
}

// repeated reads the headers of an update that may be a repetition.
func repeated(c *api.Call, u *item.Update) (err error) {
	if u.Key, u.Age, err = repetition(c); err == nil {
		u.Within, err = c.Within()
	}
	return err
}

// repetition returns the key of a request, and how long ago it was sent first.
func repetition(c *api.Call) (key string, age time.Duration, err error) {
	if key, err = c.Key(); err == nil {
		age, err = c.Age()
	}
	return key, age, err
}

// claimed claims an item. A server that drains answers waiting callers as if no item came.
func (f *front) claimed(c *api.Call, name string, q *item.Claim) (*item.Item, error) {
	if q.Wait == 0 {
		return f.stores.Claim(c.Context(), name, q)
	}
	ctx, cancel := c.Parked(q.Wait)
	defer cancel()
	it, err := f.stores.Claim(ctx, name, q)
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
	if err := form.Few(body); err != nil {
		return err
	}
	return c.Decode(body, into)
}

// conflict answers with the problems of a request that the items of a store do not allow, one text for each. A request
// that is no longer remembered is answered with 410.
func conflict(c *api.Call, err error) error {
	if errors.Is(err, item.ErrForgotten) {
		return c.JSON(http.StatusGone, form.Errors{Errors: []string{err.Error()}})
	}
	refused, is := errors.AsType[*item.ConflictError](err)
	if !is {
		return err
	}
	return c.JSON(http.StatusConflict, form.ErrorsOf(refused))
}
