package remote

import (
	"context"
	"fmt"

	"taskledger/api/view"
	"taskledger/events"
	"taskledger/tasklog"
)

// logs implements operations.Logs.
type logs struct{ *link }

// logPage is a page of a log as the API has it.
type logPage struct {
	Lines  []view.LogLine `json:"lines"`
	Cursor string         `json:"cursor"`
	More   bool           `json:"more"`
	Ended  bool           `json:"ended"`
}

// Log implements operations.Logs. It does not tell the behavior.
func (l logs) Log(ctx context.Context, id events.TaskID, s tasklog.Selection) (told tasklog.Told, err error) {
	q := newParams()
	q.number("limit", int64(limitOf(s.Limit)))
	q.text("cursor", s.Cursor)
	q.number("attempt", int64(s.Attempt))
	if s.Level != tasklog.Info {
		q.text("level", s.Level.String())
	}
	if s.Since != 0 {
		q.time("start", s.Since.Time())
	}
	if s.Until != 0 {
		q.time("end", s.Until.Time())
	}
	var page logPage
	if err := reader(l).ofTask(ctx, "read the log", id, "/logs", q, &page); err != nil {
		return told, err
	}
	told = tasklog.Told{
		Cursor: page.Cursor,
		More:   page.More,
		Ended:  page.Ended,
	}
	for _, shown := range page.Lines {
		level, err := tasklog.ParseLevel(shown.Level)
		if err != nil {
			return tasklog.Told{}, unavailable(fmt.Errorf("read the log: %w", err))
		}
		told.Lines = append(told.Lines, tasklog.TaskLine{
			Attempt: shown.Attempt,
			Number:  shown.Number,
			Missing: shown.Missing,
			Line: tasklog.Line{
				At:    shown.Time,
				Level: level,
				Text:  shown.Message,
			},
		})
	}
	return told, nil
}

// limitOf returns the limit of a page, of which 0 is the largest.
func limitOf(limit int) int {
	if limit == 0 {
		return tasklog.MaxPageLines
	}
	return limit
}
