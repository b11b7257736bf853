package integration_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"taskledger/behaviors"
	"taskledger/internal/testcluster"
	"taskledger/internal/testkit"
)

func TestNATS_StoppedAndStartedAgainInMidRunNothingFailsOrRunsTwice(t *testing.T) {
	t.Parallel()
	testkit.Busy(t)
	c := testcluster.New(t, testcluster.Options{})
	l := defineTally(&behaviors.Rules[string, string]{TaskID: idFromParams})
	nodes := c.StartNodes(nil, l.on, "a", "b", "c")
	client := c.StartClient("caller", nil)
	f := startFlow(t, l, nodes[0], client)
	f.await(t, 100)
	for range 2 {
		c.NATS.Stop()
		f.await(t, 50)
		c.NATS.Start()
		f.await(t, 100)
	}
	l.wantOnce(t, client.Client, f.end())
}

func TestNATS_FutureThatWaitsWhenItStopsResolves(t *testing.T) {
	t.Parallel()
	c := testcluster.New(t, testcluster.Options{})
	w := defineWork("work", nil)
	c.StartNode("a", nil, w.on("a"))
	client := c.StartClient("caller", nil)
	f := w.submit(t, client, "x")
	r := w.next(t)
	pending(t, f)
	c.NATS.Stop()
	r.succeed("done")
	want(t, f, "done")
	c.NATS.Start()
}

func TestNATS_PlainSubscriberSeesCompletions(t *testing.T) {
	t.Parallel()
	c := testcluster.New(t, testcluster.Options{})
	w := defineWork("work", &behaviors.Rules[string, string]{TaskID: idFromParams})
	n := c.StartNode("a", nil, w.on("a"))
	conn, err := nats.Connect(c.NATS.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	messages := make(chan *nats.Msg, 16)
	if _, err := conn.ChanSubscribe("taskledger.completed.>", messages); err != nil {
		t.Fatal(err)
	}
	if err := conn.FlushTimeout(soon); err != nil {
		t.Fatal(err)
	}
	w.submit(t, n, "good")
	w.next(t).succeed("fine")
	wantCompletion(t, messages, "taskledger.completed.work.SUCCESS", completion{Task: "good", Behavior: "work", Status: "SUCCESS", Run: 1, Attempt: 1, Result: "fine"})
	w.submit(t, n, "bad")
	w.next(t).fail(behaviors.Cancel(behaviors.Code("broken", errNoLuck, nil)))
	wantCompletion(t, messages, "taskledger.completed.work.FAILURE", completion{Task: "bad", Behavior: "work", Status: "FAILURE", Run: 1, Attempt: 1,
		Error: struct {
			Code string `json:"code"`
		}{"broken"}})
}

// completion is the data of a public message.
type completion struct {
	Task     string `json:"task"`
	Behavior string `json:"behavior"`
	Status   string `json:"status"`
	Run      int    `json:"run"`
	Attempt  int    `json:"attempt"`
	Result   string `json:"result"`
	Error    struct {
		Code string `json:"code"`
	} `json:"error"`
}

// wantCompletion asserts that the next message is the CloudEvent of a completion.
func wantCompletion(t *testing.T, messages chan *nats.Msg, subject string, want completion) {
	t.Helper()
	select {
	case m := <-messages:
		var event struct {
			SpecVersion, ID, Source, Type, Subject string
			Time                                   time.Time
			Data                                   completion
		}
		if err := json.Unmarshal(m.Data, &event); err != nil {
			t.Fatalf("message %s: %v", m.Data, err)
		}
		if m.Subject != subject || event.Data != want {
			t.Errorf("%s: %+v; want %s: %+v", m.Subject, event.Data, subject, want)
		}
		if event.SpecVersion != "1.0" || event.ID == "" || event.Source == "" || event.Type == "" || event.Subject != want.Task || event.Time.IsZero() {
			t.Errorf("message is no CloudEvent: %s", m.Data)
		}
	case <-time.After(soon):
		t.Fatalf("no message on %s within %s", subject, soon)
	}
}
