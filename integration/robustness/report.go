package main

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"taskledger/integration/robustness/check"
	"taskledger/integration/robustness/history"
)

// maxListed bounds the rows of the tables of violations and faults.
const maxListed = 300

// Write writes the report of a run and its judgement. It quotes what would not stay on its line.
func Write(w io.Writer, run *history.Run, j *check.Judgement) error {
	b := bufio.NewWriter(w)
	p := &printer{tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)}
	p.head(run, j)
	p.counts(run)
	p.faults(run)
	p.violations(j.Violations)
	p.timeline(run, j.Violations)
	if err := p.Flush(); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	if err := b.Flush(); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

// printer prints rows of cells. The writer below it keeps the first error.
type printer struct{ *tabwriter.Writer }

// row prints a line of cells.
func (p *printer) row(cells ...any) {
	texts := make([]string, len(cells))
	for i, c := range cells {
		texts[i] = inLine(fmt.Sprint(c))
	}
	fmt.Fprintln(p, strings.Join(texts, "\t"))
}

// title begins a part of the report.
func (p *printer) title(text string) {
	_ = p.Flush() // the next Flush returns the error, too
	fmt.Fprintf(p, "\n%s\n", inLine(text))
}

// inLine returns a text as it is, or quoted where that would not stay in its line and cell.
func inLine(s string) string {
	if !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool { return !strconv.IsPrint(r) }) {
		return strconv.Quote(s)
	}
	return s
}

func (p *printer) head(run *history.Run, j *check.Judgement) {
	i := &run.Info
	fmt.Fprintf(p, "%s: %s run, seed %d\n", j.Verdict(), i.Kind, i.Seed)
	p.row("repeat it: " + i.Command)
	p.row(fmt.Sprintf("%s long, %d shards, sessions of %d ms; every acknowledged task must end within %d ms once the faults have healed",
		span(i.End), i.Shards, i.TTLMs, i.BoundMs))
	for _, v := range i.Versions {
		p.row("version: " + v)
	}
	for _, problem := range j.Problems {
		p.row("problem of the run itself: " + problem)
	}
}

var answers = []history.Answer{history.OK, history.Refused, history.Absent, history.Unknown, history.Untold}

// counts prints how much there is, and the operations by verb and answer.
func (p *printer) counts(run *history.Run) {
	entries, tasks := 0, map[string]bool{}
	for _, m := range run.Members[:min(len(run.Members), 1)] {
		for _, all := range m.Entries {
			entries += len(all)
		}
	}
	counts := map[history.Verb]map[history.Answer]int{}
	for i := range run.Operations {
		o := &run.Operations[i]
		if o.Task != "" {
			tasks[o.Task] = true
		}
		if counts[o.Verb] == nil {
			counts[o.Verb] = map[history.Answer]int{}
		}
		counts[o.Verb][o.Answer]++
	}
	p.title("What there is")
	p.row(fmt.Sprintf("%d operations, %d tasks, %d executions, %d entries, %d members, %d faults", len(run.Operations), len(tasks),
		len(run.Executions), entries, len(run.Members), len(run.Faults)))
	p.title("Operations")
	p.row("verb", answers[0], answers[1], answers[2], answers[3], answers[4])
	for _, verb := range sortedKeys(counts) {
		n := counts[verb]
		p.row(verb, n[answers[0]], n[answers[1]], n[answers[2]], n[answers[3]], n[answers[4]])
	}
}

func (p *printer) faults(run *history.Run) {
	p.title("Faults")
	p.row("at", "for", "kind", "target", "proof")
	for i := range run.Faults[:min(len(run.Faults), maxListed)] {
		f := &run.Faults[i]
		lasted := "no end"
		if f.Until != 0 {
			lasted = span(f.Until - f.From)
		}
		p.row(span(f.From), lasted, f.Kind, f.Target, cmp.Or(f.Proof, "no proof"))
	}
	p.more(len(run.Faults))
}

func (p *printer) violations(all []check.Violation) {
	p.title("Violations")
	if len(all) == 0 {
		p.row("None.")
		return
	}
	found := map[string]int{}
	for i := range all {
		found[all[i].Invariant]++
	}
	for _, invariant := range sortedKeys(found) {
		p.row(fmt.Sprintf("%s: %d", invariant, found[invariant]))
	}
	p.title("Violations, one by one")
	p.row("invariant", "task", "shard", "entry", "what")
	for i := range all[:min(len(all), maxListed)] {
		v := &all[i]
		p.row(v.Invariant, v.Task, v.Shard, v.Entry, v.Text)
	}
	p.more(len(all))
}

// more says how many rows of so many are not listed.
func (p *printer) more(of int) {
	if of > maxListed {
		p.row(fmt.Sprintf("and %d more", of-maxListed))
	}
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K {
	keys := make([]K, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// span prints a time of the run for people.
func span(ns int64) string { return time.Duration(ns).Round(time.Millisecond / 10).String() }
