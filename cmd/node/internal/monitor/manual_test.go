package monitor_test

import (
	"log/slog"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"taskledger/api/doors"
	"taskledger/api/figures"
	"taskledger/cmd/node/internal/monitor"
)

var (
	describedName = regexp.MustCompile(`fqName: "([^"]*)"`)
	listedName    = regexp.MustCompile("`(taskledger_[a-z_]+)`")
	alertedName   = regexp.MustCompile(`taskledger_[a-z_]+`)
)

// metrics are the names of all that a node measures.
func metrics(t *testing.T) map[string]bool {
	t.Helper()
	m, err := monitor.Open(monitor.Config{}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := figures.New(m.Registry(), map[string]*doors.Budget{"tcp": doors.New(1)}); err != nil {
		t.Fatal(err)
	}
	described := make(chan *prometheus.Desc)
	go func() {
		defer close(described)
		m.Registry().Describe(described)
	}()
	names := map[string]bool{}
	for d := range described {
		names[describedName.FindStringSubmatch(d.String())[1]] = true
	}
	return names
}

func manual(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../../../docs/operating.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestManual_ListsEveryMetricAndNoOther(t *testing.T) {
	listed := map[string]bool{}
	for _, match := range listedName.FindAllStringSubmatch(manual(t), -1) {
		listed[match[1]] = true
	}
	all := metrics(t)
	for name := range all {
		if !listed[name] {
			t.Errorf("the manual does not list %s", name)
		}
	}
	for name := range listed {
		if !all[name] {
			t.Errorf("the manual lists %s, which nothing measures", name)
		}
	}
	if len(all) < 50 {
		t.Errorf("there are %d metrics: %v", len(all), slices.Sorted(maps.Keys(all)))
	}
}

// An alert on a name that is none stays silent for ever.
func TestManual_AlertsOnWhatIsMeasured(t *testing.T) {
	_, alerts, found := strings.Cut(manual(t), "### Alerts")
	_, alerts, block := strings.Cut(alerts, "```promql\n")
	alerts, _, closed := strings.Cut(alerts, "```")
	if !found || !block || !closed {
		t.Fatal("the manual has no block of alerts")
	}
	all := metrics(t)
	for line := range strings.Lines(alerts) {
		expression, why, said := strings.Cut(line, "#")
		names := alertedName.FindAllString(expression, -1)
		if !said || strings.TrimSpace(why) == "" || len(names) == 0 {
			t.Errorf("%q: want an expression with a metric, and why", line)
		}
		for _, name := range names {
			if !all[name] {
				t.Errorf("%s of %q is not measured", name, line)
			}
		}
	}
}
