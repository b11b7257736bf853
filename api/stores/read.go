package stores

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"taskledger/api"
	"taskledger/api/problem"
	"taskledger/api/stores/form"
	"taskledger/item"
	"taskledger/store"
)

func (f *front) groups(c *api.Call, name string) error {
	return eachGroup(f, c, name, func(g *item.Group) string { return g.Name })
}

func (f *front) stats(c *api.Call, name string) error { return eachGroup(f, c, name, form.GroupOf) }

// eachGroup answers with the groups that have tasks, each in a form.
func eachGroup[T any](f *front, c *api.Call, name string, as func(*item.Group) T) error {
	linear, err := flag(c, "linear")
	if err != nil {
		return err
	}
	groups, err := f.stores.Groups(c.Context(), name, linear)
	if err != nil {
		return err
	}
	all := make([]T, len(groups))
	for i := range groups {
		all[i] = as(&groups[i])
	}
	return c.JSON(http.StatusOK, all)
}

func (f *front) task(c *api.Call, name string) error {
	it, err := f.one(c, name)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, form.TaskOf(it))
}

// one returns the item that a path names.
func (f *front) one(c *api.Call, name string) (*item.Item, error) {
	linear, err := flag(c, "linear")
	if err != nil {
		return nil, err
	}
	ids, err := idsOf("task", c.Path("task"), 1)
	if err != nil {
		return nil, err
	}
	found, err := f.stores.Items(c.Context(), name, ids, linear)
	if err != nil {
		return nil, err
	}
	if found[0] == nil {
		return nil, problem.New(problem.NotFound, "task %d: there is no such task", ids[0])
	}
	return found[0], nil
}

const (
	// idsAtOnce bounds the items of one question: each may have 256 KiB.
	idsAtOnce = 50
	// pageBytes ends a page of items that are asked for by id: an answer that has more is a stream.
	pageBytes = 512 << 10
)

func (f *front) tasks(c *api.Call, name string) error {
	return f.many(c, name, func(it *item.Item) any { return form.TaskOf(it) })
}

// many answers with the items that a path names, each in a form.
func (f *front) many(c *api.Call, name string, as func(*item.Item) any) error {
	linear, err := flag(c, "linear")
	if err != nil {
		return err
	}
	ids, err := idsOf("tasks", c.Path("tasks"), item.MaxIDs)
	if err != nil {
		return err
	}
	return c.Array("[", "]", func() (page []any, more bool, err error) {
		ctx, cancel := c.Ask()
		defer cancel()
		for size := 0; len(ids) > 0 && size < pageBytes && err == nil; {
			part := ids[:min(len(ids), idsAtOnce)]
			ids = ids[len(part):]
			var found []*item.Item
			found, err = f.stores.Items(ctx, name, part, linear)
			for _, it := range found {
				if it == nil {
					page = append(page, nil)
					continue
				}
				page = append(page, as(it))
				size += len(it.Data)
			}
		}
		return page, len(ids) > 0, err
	})
}

// idsOf reads 1 to most ids, between commas.
func idsOf(field, texts string, most int) (ids []int64, err error) {
	if n := strings.Count(texts, ",") + 1; n > most {
		return nil, &store.InvalidError{Field: field, Problem: fmt.Sprintf("%d ids: want 1 to %d", n, most)}
	}
	for text := range strings.SplitSeq(texts, ",") {
		id, err := strconv.ParseUint(text, 10, 64)
		if err != nil || id < 1 || id > item.MaxNumber {
			says := fmt.Sprintf("%.32q: want a number of 1 to %d", text, int64(item.MaxNumber))
			return nil, &store.InvalidError{Field: field, Problem: says}
		}
		ids = append(ids, int64(id))
	}
	return ids, nil
}

func (f *front) group(c *api.Call, name string) error {
	group := c.Path("group")
	// net/http takes an encoded slash for the end of the path.
	if group == "" && strings.HasSuffix(strings.ToLower(c.EscapedPath()), "%2f") {
		group = "/"
	}
	return f.groupOf(c, name, group)
}

func (f *front) groupNamed(c *api.Call, name string) error {
	return f.groupOf(c, name, c.Param("name"))
}

func (f *front) groupOf(c *api.Call, name, group string) error {
	p := item.Page{Group: group}
	limit, err := limitOf(c.Param("limit"))
	if err != nil {
		return err
	}
	if text := c.Param("after"); text != "" {
		after, err := idsOf("after", text, 1)
		if err != nil {
			return err
		}
		p.After = after[0]
	}
	if p.Owned, err = flag(c, "owned"); err != nil {
		return err
	}
	if p.Linear, err = flag(c, "linear"); err != nil {
		return err
	}
	return f.listed(c, name, p, limit, func(it *item.Item) any { return form.TaskOf(it) })
}

// limitOf reads a limit, 0 for none.
func limitOf(text string) (int, error) {
	if text == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return 0, &store.InvalidError{Field: "limit", Problem: fmt.Sprintf("%.32q: want a number, 0 or more", text)}
	}
	return n, nil
}

// listed answers with the items of a group, each in a form. A limit of 0 is none.
func (f *front) listed(c *api.Call, name string, p item.Page, limit int, as func(*item.Item) any) error {
	if err := item.ValidateGroup(p.Group); err != nil {
		return err
	}
	left := limit
	return c.Array("[", "]", func() (page []any, more bool, err error) {
		ctx, cancel := c.Ask()
		defer cancel()
		p.Limit = min(left, item.MaxIDs) // later pages have the rest
		items, more, err := f.stores.Group(ctx, name, p)
		if limit > 0 {
			items = items[:min(len(items), left)]
			left -= len(items)
			more = more && left > 0
		}
		for i := range items {
			page = append(page, as(&items[i]))
			p.After = items[i].ID
		}
		return page, more && len(items) > 0, err
	})
}

// flag reads a parameter that is yes or no, in any case; no if it is not there.
func flag(c *api.Call, name string) (bool, error) {
	switch text := c.Param(name); strings.ToLower(text) {
	case "", "no", "false", "0":
		return false, nil
	case "yes", "true", "1":
		return true, nil
	default:
		says := fmt.Sprintf("%.32q: want yes, true, 1, no, false or 0", text)
		return false, &store.InvalidError{Field: name, Problem: says}
	}
}
