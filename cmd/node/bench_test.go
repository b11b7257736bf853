package main_test

import (
	"encoding/json"
	"runtime"
	"testing"
)

func TestBench_PrintsEveryFieldForEitherClient(t *testing.T) {
	t.Parallel()
	for _, client := range []string{"inproc", "grpc"} {
		t.Run(client, func(t *testing.T) {
			t.Parallel()
			var got map[string]any
			out := must(t, t.TempDir(), "bench", "--client", client, "--in-flight", "8", "--duration", "1ms", "-o", "json")
			if err := json.Unmarshal([]byte(out), &got); err != nil {
				t.Fatalf("printed %q: %v", out, err)
			}
			for _, name := range []string{"tasks_per_s", "baseline_puts_per_s", "ratio", "p50_ms", "p99_ms", "baseline_p50_ms",
				"cpu_us_per_task", "etcd_requests_per_task", "in_flight", "nodes", "duration_s", "tasks"} {
				if n, ok := got[name].(float64); !ok || n <= 0 {
					t.Errorf("%s is %v", name, got[name])
				}
			}
			if got["in_flight"] != 8.0 || got["nodes"] != 2.0 || got["client"] != client {
				t.Errorf("printed %s", out)
			}
		})
	}
}

func TestBenchScale_PrintsEveryField(t *testing.T) {
	t.Parallel()
	var got map[string]any
	out := must(t, t.TempDir(), "bench", "scale", "--waiting", "20", "--due", "20", "--delayed", "1000", "--duration", "500ms", "-o", "json")
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatalf("printed %q: %v", out, err)
	}
	for _, name := range []string{"lateness_p99_ms", "loaded_lateness_p99_ms", "take_over_s", "no_nats_resolution_p99_ms", "no_nats_resolutions"} {
		if n, ok := got[name].(float64); !ok || n <= 0 {
			t.Errorf("%s is %v", name, got[name])
		}
	}
}

func TestBenchOverload_CountsEverySubmit(t *testing.T) {
	t.Parallel()
	var got map[string]float64
	out := must(t, t.TempDir(), "bench", "overload", "--in-flight", "8", "--peak", "300ms", "--duration", "500ms", "-o", "json")
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatalf("printed %q: %v", out, err)
	}
	for _, name := range []string{"peak_per_s", "offered_per_s", "sent", "accepted", "submit_p50_ms", "p50_ms", "node_cpu", "generator_cpu"} {
		if got[name] <= 0 {
			t.Errorf("%s is %v", name, got[name])
		}
	}
	if _, ok := got["goodput"]; !ok { // how many attempts end in half a second is up to the machine
		t.Error("goodput is missing")
	}
	if apart := got["node_processors"] > 0 && got["generator_processors"] > 0; apart != (runtime.GOOS == "linux" && runtime.NumCPU() > 1) {
		t.Errorf("node and generator have processors of their own: %v", apart)
	}
	if got["sent"] != got["accepted"]+got["refused"]+got["timed_out"]+got["failed"] ||
		got["sessions_lost"] == 0 && got["failed"] > 0 { // only a machine that stood still for its TTL ends a session
		t.Errorf("printed %s", out)
	}
}
