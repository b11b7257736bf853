package remote

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"taskledger/api/operations"
	"taskledger/events"
	"taskledger/work/progress"
)

// workPath is the path of a work below its task.
const workPath = "/work"

// works implements operations.Works.
type works struct{ *link }

// Work implements operations.Works.
func (w works) Work(ctx context.Context, id events.TaskID) (progress.Work, error) {
	return w.work(ctx, id, false)
}

// WorkLinear implements operations.Works.
func (w works) WorkLinear(ctx context.Context, id events.TaskID) (progress.Work, error) {
	return w.work(ctx, id, true)
}

func (w works) work(ctx context.Context, id events.TaskID, linear bool) (told progress.Work, err error) {
	q := newParams()
	q.flag("linear", linear)
	err = reader(w).ofTask(ctx, "show the work", id, workPath, q, &told)
	return told, err
}

// WorkFailures implements operations.Works.
func (w works) WorkFailures(
	ctx context.Context, id events.TaskID, cursor string, limit int,
) (page progress.FailurePage, err error) {
	if limit == 0 {
		limit = progress.MaxPage
	}
	q := newParams()
	q.text("cursor", cursor)
	q.number("limit", int64(limit))
	err = reader(w).ofTask(ctx, "show the errors of the work", id, workPath+"/errors", q, &page)
	return page, err
}

// ResetWork implements operations.Works.
func (w works) ResetWork(ctx context.Context, id events.TaskID, how operations.WorkReset) error {
	const does = "reset the work"
	var body []byte
	var err error
	switch {
	case how.Token != nil:
		body, err = json.Marshal(map[string]string{"token": *how.Token, "reason": how.Reason})
	case how.Thresholds:
		body = []byte(`{"thresholds":true}`)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", does, err)
	}
	return w.change(ctx, does, id, workPath+"/reset", body)
}

// RerunWork implements operations.Works.
func (w works) RerunWork(ctx context.Context, id events.TaskID) error {
	return w.change(ctx, "rerun the work", id, workPath+"/rerun", []byte(`{"failed":true}`))
}

func (w works) change(ctx context.Context, does string, id events.TaskID, below string, body []byte) error {
	path, err := pathOf(id, below)
	if err != nil {
		return fmt.Errorf("%s: %w", does, err)
	}
	_, err = w.ask(ctx, request{
		does:   does,
		method: http.MethodPost,
		path:   path,
		body:   body,
	}, nil)
	return err
}
