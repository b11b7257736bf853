// Package rows writes tasks and events as the rows of tables, or as JSON.
package rows

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"taskledger/api/view"
	"taskledger/cmd/node/internal/output"
	"taskledger/ledger"
	"taskledger/task"
)

// Task writes one task, as a table one field a line.
func Task(p *output.Printer, v task.Task) error {
	if p.IsJSON() {
		return p.Row(v)
	}
	lines := [][2]any{
		{"id", v.ID}, {"behavior", v.Behavior}, {"status", Status(&v)}, {"substatus", v.Substatus}, {"since", output.Time(v.Since)}, {"priority", v.Priority}, {"attempt", v.Attempt},
		{"failures", v.Failures}, {"lost", v.Lost}, {"creator", cmp.Or(v.Creator, "-")}, {"created", output.Time(v.CreatedAt)}, {"starts", output.Time(v.ScheduleNotBefore)},
		{"started", output.Time(v.StartedAt)}, {"ended", output.Time(v.EndedAt)}, {"node", cmp.Or(view.Owner(v.Node, v.Session), "-")},
		{"last node", cmp.Or(v.LastNode, "-")}, {"version", v.Version},
	}
	if v.Progress != nil {
		lines = append(lines, [2]any{"progress", fmt.Sprintf("%d/%d %s", v.Progress.Done, v.Progress.Total, v.Progress.Note)})
	}
	if len(v.Tags) > 0 {
		lines = append(lines, [2]any{"tags", strings.Join(v.Tags, " ")})
	}
	if v.Deadline != 0 {
		lines = append(lines, [2]any{"deadline", output.Time(v.Deadline)})
	}
	if v.Params != nil {
		lines = append(lines, [2]any{"params", string(v.Params)})
	}
	if v.Result != nil {
		lines = append(lines, [2]any{"result", string(v.Result)})
	}
	if v.Error != nil {
		lines = append(lines, [2]any{"error", v.Error.Code + ": " + v.Error.Message})
	}
	if v.AskedBy != "" || v.Reason != "" {
		lines = append(lines, [2]any{"asked by", because(v.AskedBy, v.Reason)})
	}
	if v.SuspendedBy != "" || v.SuspendedFor != "" {
		lines = append(lines, [2]any{"suspended by", because(v.SuspendedBy, v.SuspendedFor)})
	}
	for _, l := range lines {
		p.Row(nil, l[0], l[1]) // a table: errors come back from flush
	}
	return nil
}

// because returns the caller who has asked for something and the reason, as far as they are known.
func because(who, why string) string {
	return strings.TrimSuffix(cmp.Or(who, "-")+": "+why, ": ")
}

// Status is the status with what an operator, or retention, did to it.
func Status(t *task.Task) string {
	text := t.Status.String()
	if t.Suspended {
		text += " suspended"
	}
	if t.Cancelled {
		text += " cancelled"
	}
	if t.Forgotten {
		text += " forgotten"
	}
	return text
}

// EventColumns are the headings of a table of events; states tells whether it has the task after each.
func EventColumns(states bool) []string {
	columns := []string{"AT", "SEQ", "EVENT", "BY", "NODE", "POSITION", "DETAILS"}
	if states {
		columns = slices.Insert(columns, 3, "STATUS", "SUBSTATUS")
	}
	return columns
}

// moment is an event with the task after it.
type moment struct {
	view.Event
	State *task.Task `json:"state"` // null after Deleted
}

// Moment writes an event with the task after it, which has no id after Deleted.
func Moment(p *output.Printer, e ledger.Event, t task.Task) error {
	v := view.OfEvent(e)
	m := moment{Event: v}
	now, substatus := "-", "-"
	if t.ID != "" {
		m.State, now, substatus = &t, Status(&t), t.Substatus.String()
	}
	cells, err := eventCells(e, v)
	if err != nil {
		return err
	}
	return p.Row(m, slices.Insert(cells, 3, any(now), any(substatus))...)
}

// Event writes an event.
func Event(p *output.Printer, e ledger.Event) error {
	v := view.OfEvent(e)
	cells, err := eventCells(e, v)
	if err != nil {
		return err
	}
	return p.Row(v, cells...)
}

// brief leaves out what fills a line of a table: the policy of a task, which is in JSON.
func brief(data any) any {
	fields, is := data.(map[string]any)
	if !is || fields["policy"] == nil {
		return data
	}
	fields = maps.Clone(fields)
	delete(fields, "policy")
	return fields
}

// eventCells are the cells of an event in a table.
func eventCells(e ledger.Event, v view.Event) ([]any, error) {
	var details strings.Builder
	if v.Data != nil {
		enc := json.NewEncoder(&details)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(brief(v.Data)); err != nil {
			return nil, fmt.Errorf("event %s: %w", e.Position, err)
		}
	}
	return []any{output.Time(v.At), v.Seq, v.Kind, cmp.Or(v.Principal, "(owner)"), cmp.Or(v.Node, "-"), v.Position, details.String()}, nil
}
