// Package report shows a recorded run and what the checkers found in it to people, as one HTML page.
package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"slices"
	"time"

	"taskledger/integration/robustness/check"
	"taskledger/integration/robustness/history"
)

// maxListed bounds the rows of the page's tables of violations and faults.
const maxListed = 300

//go:embed page.html
var pageText string

var page = template.Must(template.New("page").Parse(pageText))

// pageData holds what the page shows.
type pageData struct {
	Info       *history.Info
	Verdict    string
	Problems   []string
	Duration   string
	Answers    []history.Answer
	Verbs      []verbRow
	Faults     []faultRow
	MoreFaults int
	Violations []check.Violation
	Found      []countRow // violations by invariant
	More       int        // violations that are not listed
	Counts     []countRow
	Timeline   timeline
}

type verbRow struct {
	Verb   history.Verb
	Counts []int // by answer
}

type countRow struct {
	Name string
	N    int
}

type faultRow struct {
	*history.Fault
	At, Lasted string
}

// Write writes the page of a run and its judgement. It needs no other file, and takes every text of the run as text.
func Write(w io.Writer, run *history.Run, j *check.Judgement) error {
	violations := j.Violations
	d := pageData{Info: &run.Info, Verdict: j.Verdict(), Problems: j.Problems, Duration: span(run.Info.End), Answers: answers, Verbs: countVerbs(run),
		Found: countViolations(violations), Counts: countAll(run)}
	d.Violations = violations[:min(len(violations), maxListed)]
	d.More = len(violations) - len(d.Violations)
	faults := run.Faults[:min(len(run.Faults), maxListed)]
	d.MoreFaults = len(run.Faults) - len(faults)
	for i := range faults {
		f := &faults[i]
		d.Faults = append(d.Faults, faultRow{f, span(f.From), span(f.Until - f.From)})
	}
	d.Timeline = draw(run, violations)
	if err := page.Execute(w, &d); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

var answers = []history.Answer{history.OK, history.Refused, history.Absent, history.Unknown, history.Untold}

var verbs = []history.Verb{
	history.Submit, history.Wait, history.Get, history.Cancel, history.Retry, history.RunNow, history.Delete, history.Suspend, history.Resume,
	history.SetSchedule, history.PauseSchedule, history.ResumeSchedule, history.DeleteSchedule, history.RunSchedule, history.Backfill,
	history.EndBackfill, history.GetSchedule, history.ListSchedules,
}

func countVerbs(run *history.Run) (rows []verbRow) {
	for _, v := range verbs {
		row := verbRow{v, make([]int, len(answers))}
		for i := range run.Operations {
			o := &run.Operations[i]
			if at := slices.Index(answers, o.Answer); o.Verb == v && at >= 0 {
				row.Counts[at]++
			}
		}
		rows = append(rows, row)
	}
	return rows
}

func countViolations(violations []check.Violation) []countRow {
	return count(violations, func(v *check.Violation) string { return v.Invariant })
}

// count counts values by a name of theirs, in the order of first appearance.
func count[T any](values []T, name func(*T) string) (rows []countRow) {
	place := map[string]int{}
	for i := range values {
		n := name(&values[i])
		at, ok := place[n]
		if !ok {
			at = len(rows)
			place[n] = at
			rows = append(rows, countRow{Name: n})
		}
		rows[at].N++
	}
	return rows
}

func countAll(run *history.Run) []countRow {
	entries := 0
	for _, m := range run.Members[:min(len(run.Members), 1)] {
		for _, all := range m.Entries {
			entries += len(all)
		}
	}
	tasks := map[string]bool{}
	for i := range run.Operations {
		if id := run.Operations[i].Task; id != "" {
			tasks[id] = true
		}
	}
	return []countRow{{"operations", len(run.Operations)}, {"tasks", len(tasks)}, {"executions", len(run.Executions)},
		{"entries", entries}, {"members", len(run.Members)}, {"faults", len(run.Faults)}}
}

// span is a time of the run for people.
func span(ns int64) string { return time.Duration(ns).Round(time.Millisecond / 10).String() }
