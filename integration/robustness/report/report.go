// Package report shows a recorded run and what the checkers found in it to people: as one HTML page, and as a text table.
package report

import (
	"cmp"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"taskledger/integration/robustness/check"
	"taskledger/integration/robustness/history"
)

// maxListed bounds the rows of the page's tables of violations and faults.
const maxListed = 300

//go:embed page.html
var pageText string

var page = template.Must(template.New("page").Parse(pageText))

// Verdict returns "violated" when the checkers found something, else "rejected" when the run has problems of its own and
// proves nothing, else "passed".
func Verdict(run *history.Run, violations []check.Violation) string {
	switch {
	case len(violations) > 0:
		return "violated"
	case len(run.Info.Problems) > 0:
		return "rejected"
	}
	return "passed"
}

// pageData is what the page shows.
type pageData struct {
	Info       *history.Info
	Verdict    string
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

// Write writes the page. It needs no other file, and takes every text of the run as text.
func Write(w io.Writer, run *history.Run, violations []check.Violation) error {
	d := pageData{Info: &run.Info, Verdict: Verdict(run, violations), Duration: span(run.Info.End), Answers: answers, Verbs: countVerbs(run),
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

var answers = []history.Answer{history.OK, history.Refused, history.Absent, history.Unknown}

var verbs = []history.Verb{history.Submit, history.Wait, history.Get, history.Cancel, history.Retry, history.RunNow, history.Delete,
	history.Suspend, history.Resume}

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
		tasks[run.Operations[i].Task] = true
	}
	return []countRow{{"operations", len(run.Operations)}, {"tasks", len(tasks)}, {"executions", len(run.Executions)},
		{"entries", entries}, {"members", len(run.Members)}, {"faults", len(run.Faults)}}
}

// faultKinds counts the faults that bit and those that did not, by kind.
func faultKinds(run *history.Run) (kinds, idle []countRow) {
	var unproven []history.Fault
	for _, f := range run.Faults {
		if f.Proof == "" {
			unproven = append(unproven, f)
		}
	}
	kind := func(f *history.Fault) string { return f.Kind }
	byName := func(a, b countRow) int { return cmp.Compare(a.Name, b.Name) }
	kinds, idle = count(run.Faults, kind), count(unproven, kind)
	slices.SortFunc(kinds, byName)
	return kinds, idle
}

// maxSummary bounds the violations that a summary lists.
const maxSummary = 20

// Summary writes a text table: verdict, counts, faults by kind, and the first violations.
func Summary(w io.Writer, run *history.Run, violations []check.Violation) error {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	row := func(format string, args ...any) { // an error stays with the writer until Flush
		fmt.Fprintf(t, format+"\n", args...)
	}
	row("%s\t%s, seed %d, %s", strings.ToUpper(Verdict(run, violations)), run.Info.Kind, run.Info.Seed, span(run.Info.End))
	for _, p := range run.Info.Problems {
		row("problem\t%q", p)
	}
	for _, c := range countAll(run) {
		row("%s\t%d", c.Name, c.N)
	}
	for _, v := range countVerbs(run) {
		row("%s\t%d ok\t%d refused\t%d absent\t%d unknown", v.Verb, v.Counts[0], v.Counts[1], v.Counts[2], v.Counts[3])
	}
	kinds, idle := faultKinds(run)
	for _, k := range kinds {
		missed := 0
		if at := slices.IndexFunc(idle, func(c countRow) bool { return c.Name == k.Name }); at >= 0 {
			missed = idle[at].N
		}
		row("fault %q\t%d\t%d without proof", k.Name, k.N, missed)
	}
	row("violations\t%d", len(violations))
	for _, v := range violations[:min(len(violations), maxSummary)] {
		row("%s\t%q", v.Invariant, v.String())
	}
	if len(violations) > 0 {
		row("repeat\t%s", run.Info.Command)
	}
	if err := t.Flush(); err != nil {
		return fmt.Errorf("write summary: %w", err)
	}
	return nil
}

// span is a time of the run for people.
func span(ns int64) string { return time.Duration(ns).Round(time.Millisecond / 10).String() }
