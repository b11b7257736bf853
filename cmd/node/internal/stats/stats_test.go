package stats_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"taskledger/cmd/node/internal/output"
	"taskledger/cmd/node/internal/stats"
	"taskledger/engine"
	"taskledger/meter"
	"taskledger/store"
)

// counted are three shards, of which the last one is not served.
func counted() []engine.ShardInfo {
	work := func(n int64) meter.Figures {
		f := meter.Figures{Behavior: "work"}
		f.Counts[meter.AttemptsStarted], f.Counts[meter.AttemptsLost] = n, 1
		for range n {
			f.Times[meter.Duration].Add(20)
		}
		return f
	}
	return []engine.ShardInfo{{Figures: []meter.Figures{work(3), {Behavior: "idle"}}}, {Shard: 1, Figures: []meter.Figures{work(4)}},
		{Shard: 2, Problem: "nobody answers", Figures: []meter.Figures{work(100)}}}
}

func TestStats_SumShardsByBehaviorAndNameThoseThatAreMissing(t *testing.T) {
	var out bytes.Buffer
	err := stats.Show(output.New(&out, false, stats.Columns...), counted())
	if !errors.Is(err, store.ErrUnavailable) || !strings.HasSuffix(err.Error(), ": shard 2 is not counted: nobody answers") {
		t.Errorf("%v", err)
	}
	rows := strings.Split(strings.TrimSpace(out.String()), "\n")
	for i, want := range []string{"idle 0 0 0 0 0 0 0 0 0 0 - - - - - -", "work 0 7 0 0 0 2 0 0 0 0 - - - - 20ms 29.8ms"} {
		if got := strings.Join(strings.Fields(rows[i+1]), " "); got != want {
			t.Errorf("row %q, want %q", got, want)
		}
	}
	if err := stats.Show(output.New(&out, false, stats.Columns...), counted()[:2]); err != nil {
		t.Error(err)
	}
}

func TestStats_AsJSONHaveTheNamesOfTheMetrics(t *testing.T) {
	var out bytes.Buffer
	if err := stats.Show(output.New(&out, true), counted()[:2]); err != nil {
		t.Fatal(err)
	}
	d := json.NewDecoder(&out)
	var idle, work stats.Row
	if err := d.Decode(&idle); err != nil {
		t.Fatal(err)
	}
	if err := d.Decode(&work); err != nil {
		t.Fatal(err)
	}
	took := work.Histograms["attempt_duration_seconds"]
	if work.Behavior != "work" || work.Counters["attempts_started_total"] != 7 || took.Count != 7 || took.Sum != 0.14 || len(took.Buckets) != len(took.LE)+1 {
		t.Errorf("%+v", work)
	}
}
