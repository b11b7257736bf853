package httpd_test

import (
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"taskledger/api/doors"
	"taskledger/api/figures"
	"taskledger/cmd/node/internal/certificates"
	"taskledger/cmd/node/internal/monitor"
)

// registered returns the names of all metrics of a node with an API, and with the suffixes of their series.
func registered(t *testing.T) (names []string) {
	t.Helper()
	m, err := monitor.Open(monitor.Config{
		Cluster:      "c",
		Certificates: []certificates.File{{Name: "etcd-cert", Path: filepath.Join(t.TempDir(), "none")}},
	}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := figures.New(m.Registry(), map[string]*doors.Budget{"tcp": doors.New(1)}); err != nil {
		t.Fatal(err)
	}
	all := make(chan *prometheus.Desc)
	go func() {
		m.Registry().Describe(all)
		close(all)
	}()
	for d := range all {
		_, name, _ := strings.Cut(d.String(), `fqName: "`)
		name, _, _ = strings.Cut(name, `"`)
		names = append(names, name)
		if strings.HasSuffix(name, "_seconds") || strings.HasSuffix(name, "_events") {
			names = append(names, name+"_bucket", name+"_sum", name+"_count")
		}
	}
	return names
}

// rule matches the name and the condition of an alert rule.
var rule = regexp.MustCompile(`(?m)^ {6}- alert: (\w+)\n {8}expr: (.+)$`)

var metric = regexp.MustCompile(`taskledger_[a-z_]+`)

// unknown returns the metrics in a text that are not registered.
func unknown(text string, names []string) (missing []string) {
	for _, name := range metric.FindAllString(text, -1) {
		if !slices.Contains(names, name) {
			missing = append(missing, name)
		}
	}
	return missing
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "..", filepath.FromSlash(path)))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A rule about a metric that is called otherwise never fires, and a panel of it stays empty.
func TestDeploy_RulesAndDashboardNameMetricsThatExist(t *testing.T) {
	names := registered(t)
	if len(names) < 50 || !slices.Contains(names, "taskledger_cluster_info") {
		t.Fatalf("registered are %v", names)
	}
	if got := unknown("taskledger_ready taskledger_readiness", names); !slices.Equal(got, []string{"taskledger_readiness"}) {
		t.Fatalf("unknown are %v", got)
	}
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
		Templating struct {
			List []struct {
				Name  string
				Query json.RawMessage
			}
		}
	}
	if err := json.Unmarshal([]byte(read(t, "deploy/grafana/taskledger.json")), &dashboard); err != nil {
		t.Fatal(err)
	}
	asked := map[string]string{}
	rules := read(t, "deploy/prometheus/rules.yaml")
	for _, r := range rule.FindAllStringSubmatch(rules, -1) {
		asked["the rule "+r[1]] = r[2]
	}
	if all := strings.Count(rules, "- alert:"); len(asked) != all {
		t.Errorf("%d of %d rules are read", len(asked), all)
	}
	for _, p := range dashboard.Panels {
		for _, of := range p.Targets {
			asked["the panel "+p.Title] += of.Expr + "\n"
		}
	}
	for _, v := range dashboard.Templating.List {
		if v.Name != "datasource" {
			asked["the variable "+v.Name] = string(v.Query)
		}
	}
	if len(asked) < 40 {
		t.Errorf("only %d rules, panels and variables are read", len(asked))
	}
	for what, expr := range asked {
		if missing := unknown(expr, names); missing != nil || !metric.MatchString(expr) {
			t.Errorf("%s asks for %v: %s", what, missing, expr)
		}
	}
}

// Every condition that the manual gives for an alert is a rule.
func TestDeploy_RulesHaveTheConditionsOfTheManual(t *testing.T) {
	manual := read(t, "docs/operating.md")
	_, manual, found := strings.Cut(manual, "```promql\n")
	manual, _, ends := strings.Cut(manual, "```")
	if !found || !ends {
		t.Fatal("the manual has no conditions")
	}
	rules := read(t, "deploy/prometheus/rules.yaml")
	for line := range strings.Lines(manual) {
		condition, _, _ := strings.Cut(line, " #")
		if condition = strings.TrimSpace(condition); !strings.Contains(rules, "expr: "+condition+"\n") {
			t.Errorf("no rule has %q", condition)
		}
	}
}
