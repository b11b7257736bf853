package main

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// script is a harness whose verdicts are written down.
type script struct {
	broken, sound map[uint64]verdict // by seed; others are green
	fails         uint64             // the seed that cannot be judged; 0 = none
	judged        atomic.Int64
}

func (*script) most() int { return 4 }

func (*script) build(_ context.Context, _, overlay string) (string, error) {
	if overlay != "" {
		return "broken", nil
	}
	return "sound", nil
}

func (s *script) judge(_ context.Context, program, _ string, seed uint64) (verdict, error) {
	s.judged.Add(1)
	all := s.sound
	if program == "broken" {
		all = s.broken
	}
	if seed == s.fails {
		return verdict{}, errors.New("the kernel killed it")
	}
	if v, written := all[seed]; written {
		return v, nil
	}
	return verdict{judged: true}, nil
}

func shows(invariants ...string) verdict {
	v := verdict{judged: true}
	for _, i := range invariants {
		v.note(i, "it shows")
	}
	return v
}

func (s *script) hunt(t *testing.T, by string, out io.Writer) row {
	t.Helper()
	h := &hunt{options: options{seed: 1, parallel: 1}, dir: t.TempDir(), out: out, harnesses: map[string]harness{simulated: s}}
	return h.run(t.Context(), []planted{like("no roll call", by)})[0]
}

func TestHunt_CountsOnlyWhatMayNoticeTheBug(t *testing.T) {
	t.Chdir("../..")
	s := &script{broken: map[uint64]verdict{1: shows("13 clean", "linear"), 2: shows("13 clean", "8 ended", noEnd)}}
	r := s.hunt(t, "8, no end", io.Discard)
	if r.err != nil || r.histories != 2 || strings.Join(r.noticed, " ") != "8 no end" || r.how != "it shows" {
		t.Errorf("hunt: %+v", r)
	}
	s = &script{broken: map[uint64]verdict{1: shows("13 clean"), 3: shows("linear")}}
	if r := s.hunt(t, "8", io.Discard); !errors.Is(r.err, errNotFound) || r.histories != s.most() {
		t.Errorf("what breaks other invariants is found: %+v", r)
	}
}

func TestHunt_WantsTheSoundProgramJudgedAndGreen(t *testing.T) {
	t.Chdir("../..")
	all := shows("8 ended")
	s := &script{broken: map[uint64]verdict{1: all, 2: all, 3: all}, sound: map[uint64]verdict{1: {}, 2: shows("13 clean")}}
	var out strings.Builder
	if r := s.hunt(t, "8", &out); r.err != nil || r.histories != 3 {
		t.Errorf("hunt: %+v", r)
	}
	for _, want := range []string{"seed 1, as it is: too little happened", "seed 2, as it is: 13 (it shows)"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}

func TestHunt_EndsWithACrashAndWithAnErrorOfTheHarness(t *testing.T) {
	t.Chdir("../..")
	s := &script{broken: map[uint64]verdict{2: shows(panicked)}}
	if r := s.hunt(t, "8", io.Discard); r.err == nil || errors.Is(r.err, errNotFound) || r.histories != 2 {
		t.Errorf("of a crash: %+v", r)
	}
	if r := s.hunt(t, "8, panic", io.Discard); r.err != nil {
		t.Errorf("of a crash that the bug is known for: %+v", r)
	}
	s = &script{fails: 3}
	if r := s.hunt(t, "8", io.Discard); r.err == nil || errors.Is(r.err, errNotFound) || !strings.Contains(r.err.Error(), "seed 3") {
		t.Errorf("of an error: %+v", r)
	}
}

func TestHunt_EndsWithItsTime(t *testing.T) {
	t.Chdir("../..")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := &script{}
	h := &hunt{options: options{seed: 1, parallel: 1}, dir: t.TempDir(), out: io.Discard, harnesses: map[string]harness{simulated: s}}
	if r := h.run(ctx, []planted{like("no roll call", "8")})[0]; !errors.Is(r.err, context.Canceled) || s.judged.Load() != 0 {
		t.Errorf("hunt: %+v", r)
	}
}

// patient is a harness that judges only when so many are being judged.
type patient struct {
	script
	arrived atomic.Int64
	all     chan struct{}
}

func (p *patient) judge(ctx context.Context, program, faults string, seed uint64) (verdict, error) {
	if p.arrived.Add(1) == int64(cap(p.all)) {
		close(p.all)
	}
	select {
	case <-p.all:
		return p.script.judge(ctx, program, faults, seed)
	case <-time.After(time.Minute):
		return verdict{}, errors.New("nobody else came")
	}
}

func TestHunt_LooksForSimulatedBugsSideBySide(t *testing.T) {
	t.Chdir("../..")
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		p := &patient{all: make(chan struct{}, 3)}
		h := &hunt{options: options{seed: 1, most: 1, parallel: 3}, dir: dir, out: io.Discard, harnesses: map[string]harness{simulated: p}}
		rows := h.run(t.Context(), []planted{like("no roll call", "8"), like("retry after a cancel", "8"), like("effects before the commit", "8")})
		for _, r := range rows {
			if !errors.Is(r.err, errNotFound) {
				t.Errorf("%s: %v", r.name, r.err)
			}
		}
	})
}
