package main

import (
	"context"
	"errors"
	"reflect"
	"testing"

	"taskledger/integration/robustness/check"
	"taskledger/integration/robustness/cluster"
	"taskledger/integration/robustness/history"
)

func TestMakeAll_TellsInOrderWhatIsMadeAtATime(t *testing.T) {
	all := []cluster.Settings{{Seed: 1}, {Seed: 2}, {Seed: 3}}
	second := make(chan struct{})
	one := func(_ context.Context, s cluster.Settings) made {
		switch s.Seed {
		case 1:
			<-second // it is under way, too
		case 2:
			close(second)
		}
		return made{Settings: s}
	}
	var told []uint64
	err := makeAll(t.Context(), all, 2, one, func(m made) error {
		told = append(told, m.Seed)
		return nil
	})
	if err != nil || !reflect.DeepEqual(told, []uint64{1, 2, 3}) {
		t.Errorf("told of %v, %v", told, err)
	}
}

func TestMakeAll_EndsWithTheFirstError(t *testing.T) {
	broken := errors.New("broken")
	one := func(ctx context.Context, s cluster.Settings) made {
		if s.Seed == 2 {
			<-ctx.Done() // or it would never end
		}
		return made{Settings: s}
	}
	err := makeAll(t.Context(), []cluster.Settings{{Seed: 1}, {Seed: 2}}, 2, one, func(made) error { return broken })
	if !errors.Is(err, broken) {
		t.Errorf("%v, want %v", err, broken)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := makeAll(ctx, []cluster.Settings{{Seed: 1}}, 1, one, func(made) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want %v", err, context.Canceled)
	}
}

// What proves nothing is made again, a few times; what is broken is not.
func TestRedrawing_MakesAgainWhatProvesNothing(t *testing.T) {
	rejected := check.Judgement{Problems: []string{"too little happened"}}
	broken := check.Judgement{Problems: rejected.Problems, Violations: []check.Violation{{}}}
	for name, c := range map[string]struct {
		are  []check.Judgement
		want string
	}{
		"sound":            {[]check.Judgement{{}}, check.Passed},
		"sound at last":    {[]check.Judgement{rejected, rejected, {}}, check.Passed},
		"never sound":      {[]check.Judgement{rejected, rejected, rejected}, check.Rejected},
		"broken":           {[]check.Judgement{broken}, check.Violated},
		"broken afterward": {[]check.Judgement{rejected, broken}, check.Violated},
	} {
		n := 0
		got := redrawing(func(context.Context, cluster.Settings) made {
			n++
			return made{history: &history.Run{}, Judgement: c.are[n-1], dir: t.TempDir()}
		})(t.Context(), cluster.Settings{})
		if got.Verdict() != c.want || n != len(c.are) {
			t.Errorf("%s: %s after %d histories, want %s after %d", name, got.Verdict(), n, c.want, len(c.are))
		}
	}
}
