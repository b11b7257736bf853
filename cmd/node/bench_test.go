package main_test

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestBench_PrintsEveryFigure(t *testing.T) {
	t.Parallel()
	bench := func(t *testing.T, args ...string) string {
		t.Parallel()
		return must(t, t.TempDir(), append([]string{"bench", "--in-flight", "8", "--duration", "1ms"}, args...)...)
	}
	t.Run("json", func(t *testing.T) {
		var got map[string]any
		out := bench(t, "--output", "json")
		if err := json.Unmarshal([]byte(out), &got); err != nil {
			t.Fatalf("printed %q: %v", out, err)
		}
		for _, name := range []string{"tasks_per_s", "baseline_puts_per_s", "ratio", "p50_ms", "p99_ms",
			"baseline_p50_ms", "cpu_us_per_task", "etcd_requests_per_task", "in_flight", "nodes", "duration_s",
			"tasks"} {
			if n, ok := got[name].(float64); !ok || n <= 0 {
				t.Errorf("%s is %v", name, got[name])
			}
		}
		if got["in_flight"] != 8.0 || got["nodes"] != 2.0 {
			t.Errorf("printed %s", out)
		}
	})
	t.Run("table", func(t *testing.T) {
		out := bench(t)
		for _, what := range []string{"/s, 8 in flight", "baseline puts", "ratio", "latency ", "p50 ", "p99 ",
			"latency of a put", "processor time", "writes to etcd", "measured"} {
			if !strings.Contains(out, what) {
				t.Errorf("printed %s, want %q in it", out, what)
			}
		}
	})
}

func TestBench_FailsWhenTheRatioIsLow(t *testing.T) {
	t.Parallel()
	r := run(t, t.TempDir(), "bench", "--in-flight", "1", "--duration", "1ms", "--min-ratio", "1000")
	if r.code != 1 || !strings.Contains(r.out, "ratio") || !strings.Contains(r.err, "is below the 1000.00 asked for") {
		t.Errorf("code %d, printed %q, said %q", r.code, r.out, r.err)
	}
}
