package command_test

import (
	"bytes"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"taskledger/engine/internal/command"
	"taskledger/events"
	"taskledger/projection"
	"taskledger/projection/name"
	"taskledger/task"
)

func TestTask_IsReadAsWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		u32, flag := rapid.Uint32(), rapid.Bool()
		want := projection.Task{
			ID: genID.Draw(t, "id"),
			Kind: &projection.Kind{
				Behavior: genText.Draw(t, "behavior"),
				Policy:   genPolicy.Draw(t, "policy"),
				Creator:  genText.Draw(t, "creator"),
			},
			Priority: rapid.Int64().Draw(t, "priority"),
			Params:   genPayload.Draw(t, "params"),
			ParamsAt: genRef.Draw(t, "params at"),
			Status:   task.Status(rapid.IntRange(1, 4).Draw(t, "status")),
			Flags: projection.Flags{
				Suspended:    flag.Draw(t, "suspended"),
				Cancelled:    flag.Draw(t, "cancelled"),
				Rerun:        flag.Draw(t, "rerun"),
				RunEnded:     flag.Draw(t, "ended"),
				ParamsElided: flag.Draw(t, "params elided"),
				ResultElided: flag.Draw(t, "result elided"),
			},
			Run:     events.RunOrigin(rapid.IntRange(0, 3).Draw(t, "made by")),
			Seq:     rapid.Uint64().Draw(t, "seq"),
			Created: genRef.Draw(t, "created"),
			Last:    genRef.Draw(t, "last"),
			LastAttempt: projection.LastAttempt{
				Started:   genRef.Draw(t, "started"),
				LastNode:  name.Of(genText.Draw(t, "node")),
				Offer:     rapid.Uint64().Draw(t, "offer"),
				Lease:     genTime.Draw(t, "lease"),
				StartedAt: genTime.Draw(t, "started at"),
			},
			Outcome: genRef.Draw(t, "outcome"),
			Counts: projection.Counts{
				Attempt:  u32.Draw(t, "attempt"),
				Failures: u32.Draw(t, "failures"),
				Lost:     u32.Draw(t, "lost"),
				Runs:     u32.Draw(t, "runs"),
			},
			CreatedAt: genTime.Draw(t, "created at"),
			EndedAt:   genTime.Draw(t, "ended at"),
			Due:       genTime.Draw(t, "due"),
			Result:    genPayload.Draw(t, "result"),
			Requests:  rapid.SliceOfN(genRequest, 1, 3).Draw(t, "requests"),
		}
		if flag.Draw(t, "error") {
			want.Error = genError.Draw(t, "error")
		}
		if flag.Draw(t, "progress") {
			p := genProgress.Draw(t, "progress")
			want.Progress = &p
		}
		w := projection.Wait{
			Cause:        events.Kind(rapid.Uint8().Draw(t, "cause")),
			Since:        genTime.Draw(t, "since"),
			SuspendedAt:  genTime.Draw(t, "suspended at"),
			By:           genText.Draw(t, "by"),
			Reason:       genText.Draw(t, "reason"),
			SuspendedBy:  genText.Draw(t, "suspended by"),
			SuspendedFor: genText.Draw(t, "suspended for"),
		}
		if w != (projection.Wait{}) {
			want.Wait = &w
		}
		if want.Status == task.Running && want.Due == 0 {
			want.Node = want.LastNode.String()
		}
		if want.Status == task.Created { // no attempt has begun
			want.Started, want.Outcome, want.Attempt, want.Failures, want.Lost, want.Runs, want.LastNode, want.Offer = 0, 0, 0, 0, 0, 0, name.Name{}, 0
			want.Lease, want.StartedAt, want.EndedAt, want.Result, want.Error, want.Progress = 0, 0, 0, nil, nil, nil
		}
		got, err := command.DecodeTask(command.EncodeTask(&want))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("read as\n%+v, %v; want\n%+v", got, err, want)
		}
	})
}

// Clients of the release before read tasks too, and do not know what made a run: they read all but the end.
func TestTask_RunOfAScheduleIsReadByThoseWhoDoNotKnowWhatMadeIt(t *testing.T) {
	l := ledgerAt(t, atFailure)
	is := *l.task()
	known := command.EncodeTask(&is)
	is.Run = events.RunOfTick
	if made := command.EncodeTask(&is); !bytes.Equal(made[1:len(made)-1], known[1:]) {
		t.Errorf("a run is written as\n%x, a task that is none as\n%x", made, known)
	}
}
