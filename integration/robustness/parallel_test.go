package main

import (
	"context"
	"errors"
	"reflect"
	"testing"
)

func TestMakeAll_TellsInOrderWhatIsMadeAtATime(t *testing.T) {
	all := []settings{{seed: 1}, {seed: 2}, {seed: 3}}
	second := make(chan struct{})
	one := func(_ context.Context, s settings) made {
		switch s.seed {
		case 1:
			<-second // it is under way, too
		case 2:
			close(second)
		}
		return made{settings: s}
	}
	var told []uint64
	err := makeAll(t.Context(), all, 2, one, func(m made) error {
		told = append(told, m.seed)
		return nil
	})
	if err != nil || !reflect.DeepEqual(told, []uint64{1, 2, 3}) {
		t.Errorf("told of %v, %v", told, err)
	}
}

func TestMakeAll_EndsWithTheFirstError(t *testing.T) {
	broken := errors.New("broken")
	one := func(ctx context.Context, s settings) made {
		if s.seed == 2 {
			<-ctx.Done() // or it would never end
		}
		return made{settings: s}
	}
	err := makeAll(t.Context(), []settings{{seed: 1}, {seed: 2}}, 2, one, func(made) error { return broken })
	if !errors.Is(err, broken) {
		t.Errorf("%v, want %v", err, broken)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := makeAll(ctx, []settings{{seed: 1}}, 1, one, func(made) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want %v", err, context.Canceled)
	}
}
