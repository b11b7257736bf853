package api

import (
	"net/http"

	"taskledger/api/problem"
	"taskledger/task"
)

// TaskPage is a page of a list.
type TaskPage struct {
	Tasks []task.Task `json:"tasks"`
	// Cursor asks for the next page, which may be empty and have one; "" = there is none.
	Cursor string `json:"cursor,omitempty"`
	// Missing lists the shards that did not answer: their tasks are not in the page.
	Missing []Missing `json:"missing,omitempty"`
	// Through says beside a cursor that nothing but the missing shards is left.
	Through bool `json:"through,omitempty"`
}

// Missing names a shard that did not answer.
type Missing struct {
	Shard  int    `json:"shard"`
	Detail string `json:"detail"`
	Silent bool   `json:"silent,omitempty"` // nobody has answered, as after the death of a node
}

// missing returns the shards that did not answer as the caller reads them.
func missing(all []task.Missing) (shown []Missing) {
	for _, m := range all {
		shown = append(shown, Missing{m.Shard, problem.Of(m.Err).Error(), m.Silent})
	}
	return shown
}

func (s tasks) list(c *Call) error {
	limit, err := c.Number("limit", 100, 1, 1000)
	if err != nil {
		return err
	}
	f, left, err := filterOf(c.by, c.Param)
	if err != nil {
		return err
	}
	answer := TaskPage{Tasks: []task.Task{}}
	if !left {
		return c.JSON(http.StatusOK, answer)
	}
	f.Limit = limit
	page, err := s.reader.ListPage(c.ctx, f, c.Param("cursor"))
	if err != nil {
		return err
	}
	for _, t := range page.Tasks {
		if visible(c.by, &t) == nil {
			answer.Tasks = append(answer.Tasks, t)
		}
	}
	answer.Missing = missing(page.Missing)
	if !page.Through || len(page.Missing) > 0 {
		answer.Cursor, answer.Through = page.Cursor, page.Through
	}
	return c.JSON(http.StatusOK, answer)
}
