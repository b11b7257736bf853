package behaviors_test

import (
	"errors"
	"math"
	"reflect"
	"testing"
	"time"

	"taskledger/behaviors"
	"taskledger/store"
	"taskledger/task"
)

func TestSubmitMany_HandsOverAllThatCanTravelInOrder(t *testing.T) {
	number, to := behaviors.Define[float64, int]("number", nil), &recorder{err: store.ErrUnavailable}
	o := task.SubmitOptions{Delay: time.Minute, Priority: 2, Tags: []string{"nightly"}}
	all := number.SubmitMany(t.Context(), to, []float64{1, math.NaN(), 3}, o)
	if len(all) != 3 || len(to.requests) != 2 ||
		string(to.requests[0].Params) != "1" || string(to.requests[1].Params) != "3" {
		t.Fatalf("%d results, requests %+v", len(all), to.requests)
	}
	for _, q := range to.requests {
		if !reflect.DeepEqual(q.SubmitOptions, o) || q.Behavior.ID() != "number" || to.many != (task.ManyOptions{}) {
			t.Errorf("request %+v of %+v", q, to.many)
		}
	}
	for i, r := range all {
		_, invalid := errors.AsType[*store.InvalidError](r.Err)
		if r.Future == nil || invalid != (i == 1) || errors.Is(r.Err, store.ErrUnavailable) != (i != 1) {
			t.Errorf("result %d: future %v, %v", i, r.Future, r.Err)
		}
	}
}

func TestSubmitMany_OfOneKeySubmitsAllOrNone(t *testing.T) {
	number, to := behaviors.Define[float64, int]("number", nil), &recorder{}
	for _, row := range []struct {
		params []float64
		o      task.SubmitOptions
	}{
		{[]float64{1, math.NaN()}, task.SubmitOptions{RequestKey: "k"}},
		{[]float64{1, 2}, task.SubmitOptions{ID: "x"}},
	} {
		for i, r := range number.SubmitMany(t.Context(), to, row.params, row.o) {
			_, waited := r.Wait(t.Context())
			if invalid := new(*store.InvalidError); !errors.As(r.Err, invalid) || waited != r.Err {
				t.Errorf("result %d: %v, and of its future %v", i, r.Err, waited)
			}
		}
	}
	if to.calls != 0 {
		t.Fatal("some were submitted")
	}
	number.SubmitMany(t.Context(), to, []float64{1, 2}, task.SubmitOptions{RequestKey: "k"})
	if len(to.requests) != 2 || to.many.RequestKey != "k" || to.requests[0].RequestKey != "" {
		t.Errorf("requests %+v of %+v", to.requests, to.many)
	}
}
