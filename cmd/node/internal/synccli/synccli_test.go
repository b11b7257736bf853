package synccli_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"taskledger/cmd/node/internal/exitcode"
	"taskledger/collections"
	"taskledger/collections/apply"
	"taskledger/events"
	"taskledger/schedule"
	"taskledger/store"
	"taskledger/task"
)

const three = `sources:
  shop:
    driver: noop
    collections:
      - {name: orders, schedule: "@hourly"}
      - {name: prices}
  house:
    collections: [{name: meters, driver: exec, program: sync}]
`

func TestApply_ShowsTheDifferenceAndWhatItDid(t *testing.T) {
	l := newLine(t)
	path := l.file(three)
	if out, said := l.must("apply", path); out != "added  house_meters\nadded  shop_orders\nadded  shop_prices\n"+
		"applied: 3 added, 0 changed, 0 removed, 0 as they were\n" || said != "" {
		t.Errorf("%q, %q", out, said)
	}
	changes := l.changes
	const nothing = "nothing changed: all 3 collections are as the file says\n"
	if out, said := l.must("apply", path); out != nothing || said != "" || l.changes != changes {
		t.Errorf("%q, %q, %d changes", out, said, l.changes-changes)
	}
	l.in = strings.Replace(three, "{name: prices}", "{name: stock}", 1)
	l.in = strings.Replace(l.in, `schedule: "@hourly"`, `schedule: "@daily", attempts: 3`, 1)
	const differs = `changed  shop_orders  schedule:  @hourly -> @daily
changed  shop_orders  attempts:  25 -> 3
removed  shop_prices
added    shop_stock
`
	if out, said := l.must("diff", "-"); out != differs || said != "" || l.changes != changes {
		t.Errorf("%q, %q", out, said)
	}
	if out, _ := l.must("apply", "-"); out != differs+"applied: 1 added, 1 changed, 1 removed, 1 as they were\n" {
		t.Errorf("%q", out)
	}
	if out, said := l.must("diff", "-", "--exit-code"); out != "" || !strings.HasPrefix(said, "no difference: ") {
		t.Errorf("%q, %q", out, said)
	}
	if said := l.failsWith(exitcode.Failed, "diff", path, "--exit-code"); !strings.Contains(said, "3 collections differ") {
		t.Error(said)
	}
	l.must("diff", path)
}

func TestApply_TellsProgramsAsJSON(t *testing.T) {
	l := newLine(t)
	l.asJSON = true
	l.in = "sources: {s: {driver: exec, program: p, collections: [{name: c, env: {A: secret}}]}}"
	l.must("apply", "-")
	l.in = strings.Replace(l.in, "secret", "hidden", 1)
	out, _ := l.must("apply", "-")
	var change struct {
		ID, Change string
		Fields     []struct{ Field, Was, Want string }
	}
	var done struct {
		Changed  int
		Hash     string
		Recorded bool
	}
	in := json.NewDecoder(strings.NewReader(out))
	if err := in.Decode(&change); err != nil || change.ID != "s_c" || change.Change != "changed" ||
		len(change.Fields) != 1 || change.Fields[0].Field != "env" {
		t.Errorf("%v: %s", err, out)
	}
	if strings.Contains(out, "secret") || strings.Contains(out, "hidden") {
		t.Errorf("it shows a secret: %s", out)
	}
	if err := in.Decode(&done); err != nil || done.Changed != 1 || len(done.Hash) != 64 || !done.Recorded {
		t.Errorf("%v: %s", err, out)
	}
}

func TestApply_ABadFileChangesNothingAndIsToldByItsLines(t *testing.T) {
	l := newLine(t)
	path := l.file("sources:\n  s:\n    collections:\n      - {name: a}\n      - {name: a, keep: x}\n")
	said := l.failsWith(exitcode.Usage, "apply", path)
	for _, want := range []string{
		"warning: " + path + ":4:9: sources.s.collections[0].driver: missing",
		"\n" + path + `:5:16: sources.s.collections[1].name: "a" is there twice`,
		"\n" + path + ":5:25: sources.s.collections[1].keep: the text \"x\"",
		path + ": problems: 2; nothing was changed",
	} {
		if !strings.Contains(said, want) {
			t.Errorf("no %q in\n%s", want, said)
		}
	}
	l.failsWith(exitcode.Usage, "apply", path+"x")
	if len(l.all) > 0 {
		t.Errorf("collections %v", l.all)
	}
}

func TestApply_TellsABadFileWithoutACluster(t *testing.T) {
	l := newLine(t)
	l.away = true
	l.in = three
	for _, verb := range []string{"apply", "diff"} {
		l.failsWith(exitcode.Unavailable, verb, "-")
	}
	l.in = "sources: {s: {collections: [{name: a b}]}}"
	for _, verb := range []string{"apply", "diff"} {
		said := l.failsWith(exitcode.Usage, verb, "-")
		if !strings.HasPrefix(said, "warning: standard input:1:29: ") ||
			!strings.Contains(said, "\nstandard input:1:36: sources.s.collections[0].name: ") ||
			!strings.Contains(said, "\nstandard input: problems: 1; nothing was changed") {
			t.Errorf("%s says %q", verb, said)
		}
	}
}

func TestApply_WarnsOfAFileThatRemovesAll(t *testing.T) {
	l := newLine(t)
	l.in = "sources: {}"
	if _, said := l.must("apply", "-"); said != "" {
		t.Errorf("of none it warns %q", said)
	}
	l.in = three
	l.must("apply", "-")
	for _, c := range []struct{ file, want string }{
		{"sources: {s: {driver: noop, collections: [{name: c}]}}",
			"none of the collections that are there: all 3 are removed"},
		{"sources: {}", "no collections: all 3 are removed"},
	} {
		l.in = c.file
		if _, said := l.must("diff", "-"); said != "warning: "+c.want+"\n" {
			t.Errorf("%q, want %q", said, c.want)
		}
	}
	l.in = "sources: {shop: {driver: noop, collections: [{name: prices}]}}"
	if _, said := l.must("apply", "-"); said != "" {
		t.Errorf("of a file that keeps one it warns %q", said)
	}
	l.in = "sources: {}"
	if _, said := l.must("apply", "-"); said != "warning: no collections: the only one is removed\n" || len(l.all) > 0 {
		t.Errorf("%q, and %d are left", said, len(l.all))
	}
}

func TestApply_RefusesWhatNoNodeHasAndWhatOthersHave(t *testing.T) {
	l := newLine(t)
	path := l.file(three)
	l.lacks = []collections.Need{{Kind: collections.NeedProgram, Name: "sync"}}
	said := l.failsWith(exitcode.Refused, "apply", path)
	if !strings.Contains(said, `house_meters: program: no node has the program "sync"`) {
		t.Error(said)
	}
	l.lacks = nil
	l.all["shop_orders"] = schedule.Schedule{
		Name:       "shop_orders",
		Definition: schedule.Definition{Behavior: "noop"},
		Version:    7,
	}
	said = l.failsWith(exitcode.Refused, "diff", path)
	if !strings.Contains(said, "shop_orders: there is a schedule of this name") {
		t.Error(said)
	}
	l.fails = store.ErrUnavailable
	l.failsWith(exitcode.Unavailable, "apply", path)
	if l.changes > 0 {
		t.Errorf("%d changes", l.changes)
	}
}

func TestRun_MakesARunBeforeThoseOfTicksAndPrintsItsID(t *testing.T) {
	l := newLine(t)
	l.in = three
	l.must("apply", "-")
	const id = "shop_orders_00000000-0000-0000-0000-00000000000%d\n"
	out, said := l.must("run", "shop", "orders", "--key", "k")
	if out != fmt.Sprintf(id, 1) || said != "" || len(l.waited) > 0 {
		t.Errorf("%q, %q", out, said)
	}
	out, said = l.must("run", "shop", "orders", "--wait")
	if out != fmt.Sprintf(id, 2) || !strings.Contains(said, "it is shared") ||
		!slices.Equal(l.waited, []events.TaskID{events.TaskID(strings.TrimSpace(out))}) {
		t.Errorf("%q, %q, waited for %v", out, said, l.waited)
	}
	if want := []schedule.ByHand{{Key: "k", Priority: 300}, {Priority: 300}}; !slices.Equal(l.byHand, want) {
		t.Errorf("asked for %+v", l.byHand)
	}
	l.all["a_b"] = schedule.Schedule{Name: "a_b", Definition: schedule.Definition{Behavior: "noop"}}
	for _, of := range [][]string{{"shop", "stock"}, {"a", "b"}, {"shop_orders", ""}} {
		said := l.failsWith(exitcode.NotFound, append([]string{"run"}, of...)...)
		if want := fmt.Sprintf("collection %q of source %q: ", of[1], of[0]); !strings.HasPrefix(said, want) {
			t.Errorf("%q, want %q", said, want)
		}
		l.failsWith(exitcode.NotFound, append([]string{"pause"}, of...)...)
		l.failsWith(exitcode.NotFound, append([]string{"logs"}, of...)...)
	}
}

func TestList_HasTimesPausesAndTheLatestRuns(t *testing.T) {
	l := newLine(t)
	l.in = three
	l.must("apply", "-")
	l.must("pause", "shop", "prices", "--reason", "moving house")
	l.runs = []task.Task{
		{ID: runID("shop_orders", 2), Status: task.Running, Substatus: task.SubRunning},
		{ID: runID("shop_orders", 1), Status: task.Success, Substatus: task.SubFinal},
		{ID: runID("house_meters", 1), Status: task.Failure, Substatus: task.SubFinal},
	}
	for _, id := range []string{"shop_orders", "shop_prices"} { // the second of which is paused
		s := l.all[id]
		s.Next = 1_800_000_000_000
		l.all[id] = s
	}
	const house = "house_meters  exec    -         UTC   -       FAILED    -\n"
	const head = "ID            DRIVER  SCHEDULE  ZONE  PAUSED  LAST RUN  NEXT\n"
	const shop = "shop_orders   noop    @hourly   UTC   -       RUNNING   2027-01-15T08:00:00.000Z\n" +
		"shop_prices   noop    -         UTC   paused  -         -\n"
	if out, _ := l.must("list"); out != head+house+shop {
		t.Errorf("%s", out)
	}
	if out, _ := l.must("list", "shop"); strings.Contains(out, "house") || strings.Count(out, "\n") != 3 {
		t.Errorf("%s", out)
	}
	l.failsWith(exitcode.NotFound, "list", "sho")
	if out, _, _ := l.run("list", "sho"); out != "" {
		t.Errorf("of no source it prints %q", out)
	}
	if _, said := l.must("pause", "shop", "prices"); !strings.Contains(said, "was paused already") {
		t.Error(said)
	}
	l.must("resume", "shop", "prices")
	if _, said := l.must("resume", "shop", "prices"); !strings.Contains(said, "was not paused") {
		t.Error(said)
	}
}

func TestLogs_AreOfTheLatestRunOrOfTheOneThatIsNamed(t *testing.T) {
	l := newLine(t)
	l.in = three
	l.must("apply", "-")
	l.failsWith(exitcode.NotFound, "logs", "shop", "orders")
	l.runs = []task.Task{{ID: runID("shop_orders", 2)}, {ID: runID("shop_orders", 1)}}
	if out, _ := l.must("logs", "shop", "orders"); !strings.Contains(out, "of "+string(runID("shop_orders", 2))+"\n") {
		t.Error(out)
	}
	const id = "shop_orders_00000000-0000-0000-0000-000000000001"
	if out, _ := l.must("logs", id); !strings.Contains(out, "of "+string(runID("shop_orders", 1))+"\n") {
		t.Error(out)
	}
	l.failsWith(exitcode.Usage, "logs", "shop_orders")
}

func TestExitCode_ARefusedFileIsRefused(t *testing.T) {
	if exitcode.Of(&apply.RefusedError{}) != exitcode.Refused {
		t.Error("it is not")
	}
}
