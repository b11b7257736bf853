package view_test

import (
	"encoding/json"
	"strings"
	"testing"

	"taskledger/api/view"
	"taskledger/events"
	"taskledger/ledger"
)

func TestEvents_OfWorksAreShownWithAllThatTheySay(t *testing.T) {
	for want, body := range map[string]events.Body{
		`{"definition":"5f","partitions":[{"buckets":9,"id":"all","mode":"simulate","threads":3,"thresholds":{"deleted":10},"workers":2}],"run":2}`: &events.WorkPlanned{
			Run: 2, Definition: "5f", Partitions: []events.WorkPartition{{ID: "all", Mode: events.ModeSimulate, Buckets: 9, Workers: 2, Threads: 3,
				Thresholds: []events.WorkThreshold{{Counter: "deleted", Limit: 10}}}}},
		`{"failed_buckets":true,"run":3}`: &events.WorkPlanned{Run: 3, Failed: true},
		`{"expected":0,"partition":1}`:    &events.PartitionStarted{Partition: 1, Counted: true},
		`{"partition":1}`:                 &events.PartitionEnded{Partition: 1},
		`{"done":5,"ended":7,"errors":[{"code":"c","item":"i","message":"m"}],"failed":1,"skipped":2,"started":8,"worker":3}`: &events.BucketsMoved{Worker: 3, Attempt: 9,
			Ended: 7, Started: 8, Items: events.ItemCounts{Done: 5, Failed: 1, Skipped: 2}, Errors: []events.ItemError{{Item: "i", Code: "c", Message: "m"}}},
		`{"cause":"the attempt failed","returned":7,"worker":3}`:     &events.BucketsMoved{Worker: 3, Attempt: 9, Returned: 7, Cause: events.ReturnedFailed},
		`{"cause":"the attempt ended before it","returned":"all"}`:   &events.BucketsMoved{Cause: events.ReturnedGivenUp},
		`{"bucket":7,"counter":"deleted","items":2,"simulate":true}`: &events.PermitsGranted{Counter: "deleted", Bucket: 7, Simulate: true, Items: []uint64{1, 2}},
		`{"partitions":[{"buckets":1,"id":"all","mode":"dry-run","moves_token":true,"stream":"precise","threads":3,"thresholds":{},"workers":1}],"run":2}`: &events.WorkPlanned{
			Run: 2, Partitions: []events.WorkPartition{{ID: "all", Mode: events.ModeDryRun, Buckets: 1, Workers: 1, Threads: 3, Form: events.FormPrecise, MovesToken: true}}},
		`{"done":5,"errors":[{"code":"c","item":"i","message":"m"}],"failed":1,"oldest":"1970-01-01T00:00:00.001Z","open":2,"simulated":true,"skipped":3,"token":"t"}`: &events.TokenMoved{
			Attempt: 9, Token: "t", Simulated: true, Items: events.ItemCounts{Done: 5, Failed: 1, Skipped: 3}, Open: 2, Oldest: 1,
			Errors: []events.ItemError{{Item: "i", Code: "c", Message: "m"}}},
		`{"at":"t","bytes":3,"code":"c","hold":7,"key":"k","message":"m","partition":1,"passed":true}`: &events.ChangeHeld{Attempt: 9, Hold: 7, Partition: 1,
			Key: "k", At: "t", Data: []byte("123"), Code: "c", Message: "m", Passed: true},
		`{"done":2,"ended":true,"hold":7}`:              &events.HoldMoved{Hold: 7, Done: 2, Ended: true},
		`{"reason":"moved","token":"t","what":"token"}`: &events.WorkReset{What: events.ResetToken, Token: "t", Reason: "moved"},
		`{"what":"thresholds"}`:                         &events.WorkReset{What: events.ResetThresholds},
	} {
		text, err := json.Marshal(view.OfEvent(ledger.Event{Event: events.Event{Task: "a", Seq: 1, Body: body}}))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), `"data":`+want) {
			t.Errorf("%s is shown as %s, want %s", body.Kind(), text, want)
		}
	}
}
