package schedulecli_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	_ "time/tzdata"

	"github.com/spf13/cobra"

	"taskledger/api/operations"
	"taskledger/cmd/node/internal/exitcode"
	"taskledger/cmd/node/internal/output"
	"taskledger/cmd/node/internal/schedulecli"
	"taskledger/events"
	"taskledger/schedule"
	"taskledger/task"
)

// cluster is a cluster of schedules alone. Each has one run that never ends.
type cluster struct {
	all      map[string]schedule.Schedule
	versions schedule.Version
	keys     []string
	from, to time.Time
	fails    error // whatever is asked
}

func (c *cluster) Schedules() operations.Schedules { return c }
func (c *cluster) Backfills() operations.Backfills { return c }

func (c *cluster) find(name string) (schedule.Schedule, error) {
	s, there := c.all[name]
	if !there {
		return s, cmp.Or(c.fails, fmt.Errorf("schedule %s: %w", name, schedule.ErrNotFound))
	}
	return s, c.fails
}

func (c *cluster) change(s schedule.Schedule) schedule.Version {
	c.versions++
	s.Version = c.versions
	c.all[s.Name] = s
	return s.Version
}

func (c *cluster) SetWith(
	_ context.Context, name string, d schedule.Definition, how schedule.Setting,
) (schedule.Version, bool, error) {
	s := c.all[name]
	switch {
	case c.fails != nil:
		return 0, false, c.fails
	case how.Seen != 0 && how.Seen != s.Version:
		return 0, false, fmt.Errorf("schedule %s: %w", name, schedule.ErrChanged)
	case s.Version != 0 && reflect.DeepEqual(s.Definition, d):
		return s.Version, false, nil
	}
	s.Name, s.Definition = name, d
	return c.change(s), true, nil
}

func (c *cluster) Get(_ context.Context, name string) (schedule.Schedule, error) { return c.find(name) }

// List returns half of what it may, as an owner of large schedules does.
func (c *cluster) List(
	_ context.Context, f schedule.Filter, after string, limit int,
) (some []schedule.Schedule, more bool, err error) {
	if limit < 1 || limit > 100 {
		return nil, false, fmt.Errorf("limit %d", limit)
	}
	for _, name := range slices.Sorted(maps.Keys(c.all)) {
		s := c.all[name]
		switch {
		case name <= after || !strings.HasPrefix(name, f.Prefix) || f.Paused && s.Paused == nil ||
			f.Behavior != "" && f.Behavior != s.Definition.Behavior:
		case len(some) == (limit+1)/2:
			return some, true, c.fails
		default:
			some = append(some, s)
		}
	}
	return some, false, c.fails
}

func (c *cluster) Steer(
	_ context.Context, verb operations.ScheduleVerb, name, reason string, _ schedule.Version,
) error {
	s, err := c.find(name)
	if err != nil {
		return err
	}
	switch verb {
	case operations.PauseSchedule:
		if s.Paused == nil {
			s.Paused = &schedule.Pause{By: "somebody", Reason: reason, Since: 1}
		}
	case operations.ResumeSchedule:
		s.Paused = nil
	case operations.EndBackfill:
		s.Fill = nil
	case operations.DeleteSchedule:
		delete(c.all, name)
		return nil
	}
	c.change(s)
	return nil
}

type handle struct {
	operations.Handle
	id     events.TaskID
	joined bool
}

func (h handle) ID() events.TaskID { return h.id }
func (h handle) Joined() bool      { return h.joined }

func (c *cluster) RunWith(
	_ context.Context, name string, is schedule.ByHand, _ schedule.Version,
) (operations.Handle, error) {
	s, err := c.find(name)
	if err != nil {
		return handle{}, err
	}
	c.keys = append(c.keys, is.Key)
	s.Active++
	c.all[name] = s
	return handle{id: events.TaskID(name + "/run:x"), joined: s.Active > 1}, nil
}

func (c *cluster) Backfill(
	_ context.Context, name string, from, to time.Time, _ schedule.Version,
) (int, error) {
	s, err := c.find(name)
	if err != nil {
		return 0, err
	}
	c.from, c.to = from, to
	s.Fill = &schedule.Fill{From: events.MillisOf(from), To: events.MillisOf(to), Ticks: 24, Left: 24}
	c.change(s)
	return 24, nil
}

// line is a command line with a cluster of its own.
type line struct {
	t *testing.T
	cluster
	in     string
	asJSON bool
}

func newLine(t *testing.T) *line {
	return &line{t: t, cluster: cluster{all: map[string]schedule.Schedule{}}}
}

// noon is the time at which all commands run.
var noon = time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)

// do runs a command, and returns what it has printed.
func (l *line) do(args ...string) (out, said string, err error) {
	var printed, other bytes.Buffer
	terminal := &schedulecli.Terminal{
		In:    strings.NewReader(l.in),
		Err:   &other,
		Print: func(columns ...string) *output.Printer { return output.New(&printed, l.asJSON, columns...) },
		Now:   func() time.Time { return noon },
		Ask: func(
			c *cobra.Command, run func(context.Context, schedulecli.Client, []string) error,
		) *cobra.Command {
			c.RunE = func(c *cobra.Command, args []string) error { return run(c.Context(), &l.cluster, args) }
			return c
		},
	}
	c := terminal.Command()
	c.SetArgs(args)
	c.SilenceErrors, c.SilenceUsage = true, true
	err = c.ExecuteContext(l.t.Context())
	return printed.String(), other.String(), err
}

func (l *line) must(args ...string) (out, said string) {
	l.t.Helper()
	out, said, err := l.do(args...)
	if err != nil {
		l.t.Fatalf("%q: %v", args, err)
	}
	return out, said
}

// words returns a table with one space between its cells.
func words(table string) (lines []string) {
	for text := range strings.Lines(table) {
		lines = append(lines, strings.Join(strings.Fields(text), " "))
	}
	return lines
}

func daily(name string, more ...string) []string {
	return append([]string{"set", name, "--cron", "0 30 3 * * ?", "--behavior", "purge"}, more...)
}

func TestSet_TellsWhatBecameOfItAndWhenItFires(t *testing.T) {
	l := newLine(t)
	when := []string{
		"fires at 03:30, every day",
		"timezone Europe/Berlin",
		"next 2026-11-29T03:30:00+01:00 2026-11-29T02:30:00.000Z",
		"2026-11-30T03:30:00+01:00 2026-11-30T02:30:00.000Z",
		"2026-12-01T03:30:00+01:00 2026-12-01T02:30:00.000Z",
	}
	berlin := daily("nightly", "--timezone", "Europe/Berlin")
	for _, c := range []struct {
		outcome, version string
		args             []string
	}{
		{"made", "1", berlin},
		{"unchanged", "1", berlin},
		{"changed", "2", append(berlin, "--keep", "7")},
	} {
		out, said := l.must(c.args...)
		want := append([]string{c.outcome + " nightly", "version " + c.version}, when...)
		if !slices.Equal(words(out), want) {
			t.Errorf("%q: printed %q, want %q", c.args, words(out), want)
		}
		if said != "" {
			t.Errorf("%q: said %q", c.args, said)
		}
	}
}

func TestSet_AsJSONIsOneObject(t *testing.T) {
	l := newLine(t)
	l.asJSON = true
	out, _ := l.must(daily("nightly", "--end", "2026-11-29T12:00:00Z")...)
	var got struct {
		Name, Outcome, Cron, Timezone, Description string
		Version                                    uint64
		Next                                       []struct{ Local, UTC string }
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil || strings.Count(out, "\n") != 1 {
		t.Fatalf("%q: %v", out, err)
	}
	if got.Name != "nightly" || got.Outcome != "made" || got.Version != 1 || got.Cron != "0 30 3 * * ?" ||
		got.Timezone != "UTC" || got.Description != "at 03:30, every day" {
		t.Errorf("%+v", got)
	}
	if len(got.Next) != 1 || got.Next[0].UTC != "2026-11-29T03:30:00.000Z" || got.Next[0].Local != "2026-11-29T03:30:00Z" {
		t.Errorf("ticks %+v, want one: the next is after the end", got.Next)
	}
}

func TestSet_SendsWhatItsFlagsSay(t *testing.T) {
	l := newLine(t)
	l.must("set", "full", "--cron", "@daily", "--behavior", "b", "--params", `{"a":1}`, "--timezone", "Asia/Tokyo",
		"--overlap", "allow", "--misfire", "all", "--grace", "2h", "--jitter", "1m", "--start", "2027-01-01T00:00:00Z",
		"--end", "2028-01-01T00:00:00Z", "--priority", "7", "--attempt-timeout", "1h", "--max-attempts", "3", "--keep", "30",
		"--pause-on-failure")
	want := schedule.Definition{
		Cron:           "@daily",
		Timezone:       "Asia/Tokyo",
		Behavior:       "b",
		Params:         []byte(`{"a":1}`),
		Overlap:        schedule.Allow,
		Misfire:        schedule.All,
		Grace:          2 * time.Hour,
		Jitter:         time.Minute,
		Start:          time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC),
		End:            time.Date(2028, 1, 1, 0, 0, 0, 0, time.UTC),
		Priority:       7,
		Timeout:        time.Hour,
		Attempts:       3,
		Keep:           30,
		PauseOnFailure: true,
	}
	if got := l.all["full"].Definition; !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}

	file := filepath.Join(t.TempDir(), "definition")
	text, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	l.in = string(text)
	for _, from := range []string{file, "-"} {
		if out, _ := l.must("set", "full", "--file", from); !strings.HasPrefix(out, "unchanged") {
			t.Errorf("--file %s: %q", from, out)
		}
	}

	l.must("set", "none", "--cron", "@daily", "--behavior", "b", "--grace", "0s", "--keep", "0")
	if got := l.all["none"].Definition; got.Grace != -1 || got.Keep != -1 {
		t.Errorf("a grace of %s and %d kept runs, want none at all", got.Grace, got.Keep)
	}
	l.must("set", "defaults", "--cron", "@daily", "--behavior", "b")
	if got := l.all["defaults"].Definition; !reflect.DeepEqual(got, schedule.Definition{Cron: "@daily", Behavior: "b"}) {
		t.Errorf("%+v, want defaults", got)
	}
}

func TestSet_RefusesWhatItDoesNotUnderstandAndNamesIt(t *testing.T) {
	l := newLine(t)
	for _, c := range []struct {
		want, in string
		args     []string
	}{
		{"cron: ", "", []string{"--behavior", "b", "--cron", "x"}},
		{`cron: 5 fields, want 6 or 7`, "", []string{"--cron", "0 3 * * *", "--behavior", "b"}},
		{"behavior", "", []string{"--cron", "@daily"}},
		{"timezone: ", "", daily("", "--timezone", "Berlin")[2:]},
		{"overlap: ", "", daily("", "--overlap", "maybe")[2:]},
		{"--start tomorrow: want a time", "", daily("", "--start", "tomorrow")[2:]},
		{"params: no JSON", "", daily("", "--params", "{")[2:]},
		{"file", "{}", daily("", "--file", "-")[2:]},
		{"definition: body: it is empty", "", []string{"--file", "-"}},
		{"crom", `{"crom":"@daily"}`, []string{"--file", "-"}},
		{"definition: cron: want a text, got the JSON type number", `{"cron":1}`, []string{"--file", "-"}},
		{"definition", strings.Repeat(" ", 1<<20), []string{"--file", "-"}},
	} {
		l.in = c.in
		_, _, err := l.do(append([]string{"set", "x"}, c.args...)...)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "Go ") {
			t.Errorf("%q of %.40q: %v, want %q", c.args, c.in, err, c.want)
		}
		mixed := c.in == "{}" // flags that exclude each other are refused before the command
		if !mixed && exitcode.Of(err) != exitcode.Usage {
			t.Errorf("%q of %.40q: exit code %d", c.args, c.in, exitcode.Of(err))
		}
	}
	if len(l.all) > 0 {
		t.Errorf("%d schedules were set", len(l.all))
	}
}

func TestSet_WarnsOfTicksLessThanAMinuteApart(t *testing.T) {
	l := newLine(t)
	for expression, want := range map[string]string{
		"* * * * * ?":     "1s",
		"0,40 30 3 * * ?": "40s",
		"@every 59s":      "59s",
		"@every 60s":      "",
		"0 * * * * ?":     "",
		"@daily":          "",
	} {
		for _, args := range [][]string{{"set", "s", "--behavior", "b", "--cron", expression}, {"next", expression}} {
			_, said := l.must(args...)
			if (said != "") != (want != "") || !strings.Contains(said, want) {
				t.Errorf("%q: said %q, want %q", args, said, want)
			}
		}
	}
}

func TestSet_WithoutCronSaysThatItNeverFires(t *testing.T) {
	l := newLine(t)
	out, said := l.must("set", "s", "--behavior", "b", "--keep", "3")
	for _, want := range []string{"made s", "fires never by itself", "next -"} {
		if !slices.Contains(words(out), want) || said != "" {
			t.Errorf("printed %q, want %q; said %q", out, want, said)
		}
	}
	out, _ = l.must("get", "s")
	for _, want := range []string{"cron -", "fires never by itself", "state by hand"} {
		if !slices.Contains(words(out), want) {
			t.Errorf("printed %q, want %q", out, want)
		}
	}
	_, _, err := l.do("set", "s", "--behavior", "b", "--jitter", "5s")
	if exitcode.Of(err) != exitcode.Usage || !strings.Contains(err.Error(), "jitter: it is about ticks") {
		t.Errorf("%v", err)
	}
}

func TestSet_WithAVersionChangesNoOther(t *testing.T) {
	l := newLine(t)
	l.must(daily("s")...)
	_, _, err := l.do(daily("s", "--keep", "1", "--if-version", "7")...)
	if !errors.Is(err, schedule.ErrChanged) || exitcode.Of(err) != exitcode.Refused {
		t.Errorf("%v, exit code %d", err, exitcode.Of(err))
	}
	if out, _ := l.must(daily("s", "--keep", "1", "--if-version", "1")...); !strings.HasPrefix(out, "changed") {
		t.Errorf("%q", out)
	}
}

func TestNext_AsksNoCluster(t *testing.T) {
	l := newLine(t)
	l.fails = errors.New("there is no cluster")
	out, said := l.must("next", "0 0 12 ? * MON-FRI", "--timezone", "America/New_York", "--limit", "2")
	want := []string{
		"fires at 12:00, Monday to Friday",
		"timezone America/New_York",
		"next 2026-11-30T12:00:00-05:00 2026-11-30T17:00:00.000Z",
		"2026-12-01T12:00:00-05:00 2026-12-01T17:00:00.000Z",
	}
	if got := words(out); !slices.Equal(got, want) || said != "" {
		t.Errorf("printed %q, want %q; said %q", got, want, said)
	}
	if out, _ := l.must("next", "@daily"); len(words(out)) != 7 {
		t.Errorf("%q, want five ticks", out)
	}
	if out, _ := l.must("next", "0 0 0 1 1 ? 2020"); !slices.Contains(words(out), "next never: no time to come is one of these") {
		t.Errorf("%q, want none", out)
	}
	for _, args := range [][]string{
		{"x"}, {"@daily", "--timezone", "Local"}, {"@daily", "--limit", "0"}, {"@daily", "--limit", "1001"}, {""},
	} {
		if _, _, err := l.do(append([]string{"next"}, args...)...); exitcode.Of(err) != exitcode.Usage {
			t.Errorf("%q: %v", args, err)
		}
	}
}

func TestList_ShowsTheStateOfEach(t *testing.T) {
	l := newLine(t)
	for name, s := range map[string]schedule.Schedule{
		"a": {Next: events.MillisOf(noon), Last: events.MillisOf(noon.Add(-time.Hour)), Active: 2},
		"b": {Next: 1, Paused: &schedule.Pause{}},
		"c": {Next: 1, Paused: &schedule.Pause{Failed: "c/tick:1"}},
		"d": {Next: 1, Why: "the store is almost full"},
		"e": {Fill: &schedule.Fill{Ticks: 10, Left: 7}},
		"f": {Active: 1},
	} {
		s.Name, s.Definition = name, schedule.Definition{Cron: "@hourly", Timezone: "UTC", Behavior: "work"}
		if name == "f" {
			s.Definition.Cron = ""
		}
		l.all[name] = s
	}
	out, _ := l.must("list")
	want := []string{
		"NAME BEHAVIOR CRON ZONE NEXT LAST ACTIVE STATE",
		"a work @hourly UTC 2026-11-28T12:00:00.000Z 2026-11-28T11:00:00.000Z 2 on",
		"b work @hourly UTC - - 0 paused",
		"c work @hourly UTC - - 0 failed",
		"d work @hourly UTC 1970-01-01T00:00:00.001Z - 0 held up",
		"e work @hourly UTC - - 0 ended, backfill 3/10",
		"f work - UTC - - 1 by hand",
	}
	if got := words(out); !slices.Equal(got, want) {
		t.Errorf("printed %q, want %q", got, want)
	}
}

func TestList_ShowsWhatItsFlagsSelect(t *testing.T) {
	l := newLine(t)
	for name, behavior := range map[string]string{"app-a": "purge", "app-b": "work", "b": "work", "c": "work"} {
		l.all[name] = schedule.Schedule{Name: name, Definition: schedule.Definition{Behavior: behavior}}
	}
	paused := l.all["c"]
	paused.Paused = &schedule.Pause{}
	l.all["c"] = paused
	for want, args := range map[string][]string{
		"app-a app-b": {"--prefix", "app-"},
		"app-b b c":   {"--behavior", "work"},
		"app-b":       {"--behavior", "work", "--prefix", "app-"},
		"c":           {"--paused"},
	} {
		out, _ := l.must(append([]string{"list"}, args...)...)
		var got []string
		for _, row := range words(out)[1:] {
			name, _, _ := strings.Cut(row, " ")
			got = append(got, name)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q: listed %q, want %q", args, got, want)
		}
	}
}

func TestList_TellsThatThereAreMoreAndGoesOn(t *testing.T) {
	l := newLine(t)
	for i := range 250 {
		l.must(daily(fmt.Sprintf("s%03d", i))...)
	}
	for _, c := range []struct {
		args  []string
		lines int
		said  string
	}{
		{nil, 100, "there are more: go on with --cursor s099\n"},
		{[]string{"--limit", "3"}, 3, "there are more: go on with --cursor s002\n"},
		{[]string{"--limit", "3", "--cursor", "s246"}, 3, ""},
		{[]string{"--limit", "0"}, 250, ""},
		{[]string{"--limit", "130", "--cursor", "s009"}, 130, "there are more: go on with --cursor s139\n"},
	} {
		out, said := l.must(append([]string{"list"}, c.args...)...)
		if strings.Count(out, "\n") != c.lines+1 || said != c.said {
			t.Errorf("%q: %d lines, said %q", c.args, strings.Count(out, "\n"), said)
		}
	}
	if _, _, err := l.do("list", "--limit", "-1"); exitcode.Of(err) != exitcode.Usage {
		t.Error(err)
	}
}

func TestGet_ShowsTheDefinitionAndTheState(t *testing.T) {
	l := newLine(t)
	l.must(daily("s", "--timezone", "Europe/Berlin", "--params", `{"table":"orders"}`)...)
	l.must("pause", "s", "--reason", "moving house")
	l.must("backfill", "s", "2026-11-27T00:00:00Z", "2026-11-27T23:00:00Z")
	s := l.all["s"]
	s.Next = events.MillisOf(noon)
	l.all["s"] = s
	got, _ := l.must("get", "s")
	for _, want := range []string{
		"behavior purge", "cron 0 30 3 * * ?", "fires at 03:30, every day", `params {"table":"orders"}`, "version 3",
		"next -", "state paused, backfill 0/24", "reason moving house",
		"backfill 2026-11-27T00:00:00.000Z to 2026-11-27T23:00:00.000Z",
	} {
		if !slices.Contains(words(got), want) {
			t.Errorf("%q, want %q", words(got), want)
		}
	}
	l.must("resume", "s")
	got, _ = l.must("get", "s")
	if want := "next 2026-11-28T13:00:00+01:00 2026-11-28T12:00:00.000Z"; !slices.Contains(words(got), want) {
		t.Errorf("%q, want %q", words(got), want)
	}
	s = l.all["s"]
	l.asJSON = true
	out, _ := l.must("get", "s")
	var is schedule.Schedule
	if err := json.Unmarshal([]byte(out), &is); err != nil || !reflect.DeepEqual(is, s) {
		t.Errorf("%s is read as %+v, %v; want %+v", out, is, err, s)
	}
}

func TestRun_PrintsTheIDAndSaysThatItIsShared(t *testing.T) {
	l := newLine(t)
	l.must(daily("s")...)
	if out, said := l.must("run", "s", "--key", "k"); out != "s/run:x\n" || said != "" || l.keys[0] != "k" {
		t.Errorf("%q, %q, keys %q", out, said, l.keys)
	}
	if out, said := l.must("run", "s"); out != "s/run:x\n" || !strings.Contains(said, "shared") || l.keys[1] != "" {
		t.Errorf("%q, %q, keys %q", out, said, l.keys)
	}
	l.asJSON = true
	if out, said := l.must("run", "s"); out != `{"id":"s/run:x","joined":true}`+"\n" || said != "" {
		t.Errorf("%q, %q", out, said)
	}
}

func TestRun_ThatWasNotAnsweredIsRepeatedByItsKeyAlone(t *testing.T) {
	l := newLine(t)
	l.fails = task.ErrUnknown
	for key, again := range map[string]bool{"k": true, "": false} {
		args := []string{"run", "s"}
		if key != "" {
			args = append(args, "--key", key)
		}
		_, _, err := l.do(args...)
		if exitcode.Of(err) != exitcode.Unavailable || strings.Contains(fmt.Sprint(err), "again") != again {
			t.Errorf("key %q: %v", key, err)
		}
	}
}

func TestPauseAndResume_SayWhatWasSoAlready(t *testing.T) {
	l := newLine(t)
	l.must(daily("s")...)
	if out, said := l.must("resume", "s"); out != "" || said != "schedule s was not paused\n" {
		t.Errorf("%q, %q", out, said)
	}
	if out, said := l.must("pause", "s", "--reason", "first"); out+said != "" || l.all["s"].Paused.Reason != "first" {
		t.Errorf("%q, %q, %+v", out, said, l.all["s"].Paused)
	}
	if _, said := l.must("pause", "s", "--reason", "second"); said != "schedule s was paused already; the reason stays\n" {
		t.Errorf("%q", said)
	}
	if out, said := l.must("resume", "s"); out+said != "" || l.all["s"].Paused != nil {
		t.Errorf("%q, %q, %+v", out, said, l.all["s"].Paused)
	}
}

func TestBackfill_TakesTimesAndPrintsTheTicks(t *testing.T) {
	l := newLine(t)
	l.must(daily("s")...)
	out, _ := l.must("backfill", "s", "2026-11-01T00:00:00Z", "2026-11-02T01:00:00+01:00")
	if got := words(out); !slices.Equal(got, []string{"ticks 24"}) {
		t.Errorf("%q", got)
	}
	if from, to := l.from, l.to; from.Unix() != 1793491200 || to.Sub(from) != 24*time.Hour {
		t.Errorf("from %s to %s", from, to)
	}
	if l.must("end-backfill", "s", "--reason", "enough"); l.all["s"].Fill != nil {
		t.Errorf("%+v", l.all["s"].Fill)
	}
	for want, args := range map[string][]string{
		`FROM x: want a time`: {"x", "2026-11-01T00:00:00Z"},
		`TO x: want a time`:   {"2026-11-01T00:00:00Z", "x"},
	} {
		_, _, err := l.do(append([]string{"backfill", "s"}, args...)...)
		if exitcode.Of(err) != exitcode.Usage || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", args, err)
		}
	}
}

func TestCommands_OfNoScheduleEndAsThoseOfNoTask(t *testing.T) {
	l := newLine(t)
	l.must(daily("s")...)
	l.must("delete", "s")
	for _, args := range [][]string{
		{"get"}, {"run"}, {"pause"}, {"resume"}, {"delete"}, {"end-backfill"},
		{"backfill", "2026-11-01T00:00:00Z", "2026-11-02T00:00:00Z"},
	} {
		_, _, err := l.do(append([]string{args[0], "s"}, args[1:]...)...)
		if !errors.Is(err, schedule.ErrNotFound) || exitcode.Of(err) != exitcode.NotFound {
			t.Errorf("%q: %v, exit code %d", args, err, exitcode.Of(err))
		}
	}
}
