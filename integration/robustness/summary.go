package main

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"taskledger/integration/robustness/check"
	"taskledger/integration/robustness/cluster"
	"taskledger/integration/robustness/fault"
	"taskledger/integration/robustness/history"
)

// summary holds the sums of several histories. It is written as JSON.
type summary struct {
	Histories  int                    `json:"histories"`
	Parallel   int                    `json:"parallel"` // at a time
	Rejected   int                    `json:"rejected"` // that prove nothing
	Seconds    float64                `json:"seconds"`
	Operations map[history.Answer]int `json:"operations"`
	Items      map[history.Answer]int `json:"item_calls"`
	Commands   int                    `json:"commands"` // of the command line that were answered
	Executions int                    `json:"executions"`
	Entries    int                    `json:"entries"`
	Trimmed    int                    `json:"trimmed"`   // entries that left etcd
	Archived   int                    `json:"archived"`  // entries in the archive at the end
	Snapshots  int                    `json:"snapshots"` // compared with the journal at the end
	Fired      map[string]int         `json:"faults"`    // that verifiably did, by kind
	Planned    map[string]int         `json:"planned"`   // histories that must have a kind
	NotRun     map[string]string      `json:"not_run"`   // kinds, with the reason
	Broken     map[string]int         `json:"violated"`  // violations, by invariant
	Rerun      reruns                 `json:"rerun_after_kill"`
	RerunSlow  reruns                 `json:"rerun_after_kill_and_etcd_leader_change"`
	RerunNear  reruns                 `json:"rerun_after_kill_near_other_faults"`
	Refused    int                    `json:"late_outcomes_refused"`
	Seen       check.Seen             `json:"seen"`
}

// reruns holds the times that tasks of killed nodes took to run again.
type reruns struct {
	Promise time.Duration   `json:"promise_ns"`
	Times   []time.Duration `json:"times_ns"`
}

func newSummary() *summary {
	return &summary{Operations: map[history.Answer]int{}, Items: map[history.Answer]int{}, Fired: map[string]int{}, Planned: map[string]int{}, NotRun: map[string]string{}, Broken: map[string]int{}, Seen: check.Seen{},
		Rerun: reruns{Promise: cluster.TTL + check.RerunPromise}, RerunSlow: reruns{Promise: 2*cluster.TTL + 2*time.Second}, RerunNear: reruns{Promise: cluster.TTL + check.RerunPromise}}
}

// add counts one history.
func (s *summary) add(h *history.Run, j *check.Judgement, dir string) error {
	s.Histories++
	if len(j.Problems) > 0 {
		s.Rejected++
	}
	s.Seconds += time.Duration(h.Info.End).Seconds()
	for _, op := range h.Operations {
		s.Operations[op.Answer]++
	}
	for i := range h.Items {
		s.Items[h.Items[i].Answer]++
	}
	s.Executions += len(h.Executions)
	s.Seen.Add(j.Seen)
	s.Commands += h.Info.Commands
	s.Snapshots += h.Info.Snapshots
	s.Trimmed += h.Info.Trimmed
	s.Archived += h.Info.Archived
	if len(h.Members) > 0 {
		for _, shard := range h.Members[0].Entries {
			s.Entries += len(shard)
		}
	}
	for _, f := range h.Faults {
		if f.Proof != "" {
			s.Fired[f.Kind]++
		}
	}
	for _, v := range j.Violations {
		s.Broken[v.Invariant]++
	}
	for i := range h.Faults {
		if h.Faults[i].Kind == history.KillKind {
			s.countReruns(h, &h.Faults[i])
		}
	}
	late, err := cluster.CountInLogs(dir, "*.log", "late outcome refused")
	s.Refused += late
	return err
}

// countReruns times the tasks that ran where a node was killed, until their next attempt begins.
func (s *summary) countReruns(h *history.Run, kill *history.Fault) {
	to := &s.Rerun
	if slices.ContainsFunc(h.Faults, func(f history.Fault) bool {
		return strings.HasPrefix(f.Kind, "etcd-") && f.From < kill.Until+int64(cluster.TTL) && f.Until > kill.From-int64(cluster.TTL)
	}) {
		to = &s.RerunSlow
	} else if !h.Alone(kill, kill.From-int64(cluster.TTL), kill.From+int64(cluster.TTL+check.RerunPromise)) {
		to = &s.RerunNear
	}
	for _, again := range h.Reruns(kill) {
		if again.Next != 0 {
			to.Times = append(to.Times, time.Duration(again.Next-kill.From))
		}
	}
}

func (r reruns) String() string {
	late := 0
	for _, t := range r.Times {
		if t > r.Promise {
			late++
		}
	}
	return fmt.Sprintf("%s; promised %s, kept by all but %d", check.Spread(r.Times), r.Promise, late)
}

// broken counts the violations of invariants.
func (s *summary) broken(invariants ...string) (n int) {
	for name, count := range s.Broken {
		number, _, _ := strings.Cut(name, " ")
		if slices.Contains(invariants, number) {
			n += count
		}
	}
	return n
}

// green reports whether every history proves something, and nothing bad.
func (s *summary) green() bool { return s.Histories > 0 && s.Rejected == 0 && len(s.Broken) == 0 }

func (s *summary) write(w io.Writer) error {
	b := bufio.NewWriter(w)
	row := func(name, format string, args ...any) {
		fmt.Fprintf(b, "%-34s %s\n", name, fmt.Sprintf(format, args...))
	}
	operations := 0
	for _, n := range s.Operations {
		operations += n
	}
	row("histories", "%d, %d at a time, %d rejected, %.0f s", s.Histories, s.Parallel, s.Rejected, s.Seconds)
	row("operations", "%d", operations)
	for _, answer := range slices.Sorted(maps.Keys(s.Operations)) {
		row("  "+string(answer), "%d", s.Operations[answer])
	}
	for _, answer := range slices.Sorted(maps.Keys(s.Items)) {
		row("calls to task stores: "+string(answer), "%d", s.Items[answer])
	}
	row("commands that were typed", "%d answered", s.Commands)
	row("seen", "%s", s.Seen)
	row("executions, snapshots", "%d, %d", s.Executions, s.Snapshots)
	row("entries", "%d, of which %d trimmed, %d archived", s.Entries, s.Trimmed, s.Archived)
	fired := 0
	for _, f := range fault.Kinds {
		fired += s.Fired[f.Name]
	}
	row("faults that fired", "%d", fired)
	for _, f := range fault.Kinds {
		switch {
		case s.Fired[f.Name] > 0:
			row("  "+f.Name, "%d", s.Fired[f.Name])
		case s.NotRun[f.Name] != "":
			row("  "+f.Name, "not run: %s", s.NotRun[f.Name])
		case s.Planned[f.Name] > 0:
			row("  "+f.Name, "0, planned for %d histories", s.Planned[f.Name])
		}
	}
	row("  links are cut by", "%s", fault.Cutters())
	if s.Parallel > 1 {
		row("run again after a kill", "of %d histories at a time, which slow each other down:", s.Parallel)
	}
	row("run again after a kill", "%s", s.Rerun)
	row("  and an etcd leader change", "%s", s.RerunSlow)
	row("  and another fault near", "%s", s.RerunNear)
	row("late outcomes refused", "%d", s.Refused)
	row("duplicates", "%d", s.broken("5", "11"))
	row("lost, or never asked for", "%d", s.broken("7", "8"))
	violations := 0
	for _, n := range s.Broken {
		violations += n
	}
	row("violations", "%d", violations)
	for _, name := range slices.Sorted(maps.Keys(s.Broken)) {
		row("  "+name, "%d", s.Broken[name])
	}
	return b.Flush()
}
