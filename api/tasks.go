package api

import (
	"net/http"
	"strconv"
	"strings"

	"taskledger/api/operations"
	"taskledger/api/view"
	"taskledger/task"
)

// tasks serves the routes that show tasks.
type tasks struct {
	reader    operations.Reader
	historian operations.Historian
	submitter operations.Submitter // waits for outcomes
}

func (s tasks) get(c *Call) error {
	wait, waits, err := c.Wait()
	if err != nil {
		return err
	}
	forgotten, err := c.Flag("forgotten")
	if err != nil {
		return err
	}
	if at, seq := c.Param("at"), c.Param("seq"); at != "" || seq != "" {
		if waits || forgotten {
			return invalid("wait", "it and forgotten are of the task as it is, not of at or seq")
		}
		return s.state(c, at, seq)
	}
	read := s.reader.Get
	if forgotten {
		read = s.reader.GetForgotten
	}
	t, err := read(c.ctx, c.id)
	if err == nil {
		err = visible(c.by, &t)
	}
	if err != nil {
		return err
	}
	ended := t.Final()
	if waits && !ended {
		// This waits for the end of the run: a repeating task is never final.
		ended = await(c, s.submitter.Attach(c.id), wait, &view.Outcome{})
		if c.lapsed.Load() {
			return lapsed()
		}
		if t, err = read(c.ctx, c.id); err == nil {
			err = visible(c.by, &t) // it may have been deleted, and created anew
		}
		if err != nil {
			return err
		}
	}
	tag := strconv.Quote(t.Version.String() + "." + t.Substatus.String()) // the substatus changes with time alone
	c.w.Header().Set("ETag", "W/"+tag)
	if !waits && isAmong(c.r.Header.Values("If-None-Match"), tag) {
		c.begin(http.StatusNotModified)
		return nil
	}
	status := http.StatusOK
	if waits && !ended {
		status = http.StatusAccepted
		c.w.Header().Set("Retry-After", "1")
	}
	return c.JSON(status, t)
}

// isAmong reports whether the values of the header If-None-Match name a tag, weak or not, or any.
func isAmong(values []string, tag string) bool {
	for _, value := range values {
		for one := range strings.SplitSeq(value, ",") {
			if one = strings.TrimSpace(one); one == "*" || strings.TrimPrefix(one, "W/") == tag {
				return true
			}
		}
	}
	return false
}

func (s tasks) explain(c *Call) error {
	if err := known(c.ctx, c, s.reader, c.id, ""); err != nil {
		return err
	}
	e, err := s.reader.Explain(c.ctx, c.id)
	if err != nil {
		return err
	}
	if c.by.Limited() && e.Why == task.WhyPaused { // the operator and the reason concern the whole cluster
		e.Text = "its behavior is paused"
	}
	return c.JSON(http.StatusOK, e)
}
