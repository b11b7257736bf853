package figures_test

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"taskledger/api/doors"
	"taskledger/api/figures"
	"taskledger/api/measured"
	"taskledger/api/problem"
)

// gathered are the values that are registered, by name and labels; of a histogram how many it has counted.
func gathered(t *testing.T, reg *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetValue())
			}
			value := m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
			all[strings.Join(append([]string{family.GetName()}, labels...), " ")] = value
		}
	}
	return all
}

func TestFigures_TellOfRequestsConnectionsAndWhatIsUnderWay(t *testing.T) {
	reg, budget := prometheus.NewRegistry(), doors.New(7)
	f, err := figures.New(reg, map[string]*doors.Budget{"tcp": budget})
	if err != nil {
		t.Fatal(err)
	}
	before := gathered(t, reg)
	for _, name := range []string{"requests_open", "streams_open", "waits_open", "connections_open tcp"} {
		if n, is := before["taskledger_api_"+name]; !is || n != 0 {
			t.Errorf("before there is an API, %s is %v, %t", name, n, is)
		}
	}
	f.Watch(func() measured.State { return measured.State{Requests: 6, Streams: 1, Waits: 2} })
	f.Answered(measured.Request{Route: "GET /v1/tasks", Status: 200, Took: time.Millisecond})
	f.Answered(measured.Request{Route: "GET /v1/tasks", Status: 401, Refused: problem.Unauthorized})
	f.Answered(measured.Request{Status: 404, Refused: problem.NotFound})
	f.Answered(measured.Request{Route: "GET /v1/tasks"})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	bounded := budget.Listen(l)
	defer bounded.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	accepted, err := bounded.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer accepted.Close()
	got := gathered(t, reg)
	for name, want := range map[string]float64{
		"requests_total GET /v1/tasks 200": 1,
		"requests_total GET /v1/tasks 401": 1,
		"requests_total GET /v1/tasks cut": 1,
		"requests_total (none) 404":        1,
		"request_seconds GET /v1/tasks":    3,
		"request_seconds (none)":           1,
		"refused_total unauthorized":       1,
		"refused_total not-found":          1,
		"requests_open":                    6,
		"streams_open":                     1,
		"waits_open":                       2,
		"connections_open tcp":             1,
		"connections_limit tcp":            7,
		"connections_displaced_total tcp":  0,
	} {
		if n, is := got["taskledger_api_"+name]; !is || n != want {
			t.Errorf("%s is %v, %t, want %v", name, n, is, want)
		}
	}
	if t.Failed() {
		t.Log(fmt.Sprint(got))
	}
	if _, err := figures.New(reg, nil); err == nil {
		t.Error("they are registered twice")
	}
}
