package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// script is a simulation whose histories are written down.
type script struct {
	simulation
	broken, sound map[uint64]history // by seed; others are green
	fails         uint64             // the seed that cannot be judged; 0 = none
	judged        atomic.Int64
}

func (*script) most() int { return 4 }

func (*script) build(context.Context, string, string) (string, error) { return "program", nil }

func (s *script) judge(_ context.Context, _, mutation, _ string, seed uint64) (history, error) {
	s.judged.Add(1)
	all := s.sound
	if mutation != "" {
		all = s.broken
	}
	if seed == s.fails {
		return history{}, errors.New("the kernel killed it")
	}
	if h, written := all[seed]; written {
		return h, nil
	}
	return history{judged: true}, nil
}

func shows(invariants ...string) history {
	h := history{judged: true}
	for _, i := range invariants {
		h.note(i, "it shows")
	}
	return h
}

// looks has a harness look for bugs, all at once.
func looks(ctx context.Context, dir string, with harness, out io.Writer, all ...planted) ([]*verdict, error) {
	c := &court{log: log.New(out, "", 0), places: make(chan struct{}, len(all))}
	h := hunter{options{seed: 1}, c, with}
	err := h.find(ctx, dir, "", all)
	return c.verdicts, errors.Join(err, c.close(ctx))
}

// hunt looks for one bug, and returns the verdict with what the hunt printed.
func (s *script) hunt(t *testing.T, by string) (*verdict, string) {
	t.Helper()
	var out bytes.Buffer
	verdicts, err := looks(t.Context(), t.TempDir(), s, &out, bug("no reconciliation", by))
	if !errors.Is(err, verdicts[0].err) {
		t.Errorf("the hunt returns %v, want %v", err, verdicts[0].err)
	}
	return verdicts[0], out.String()
}

func TestHunt_CountsOnlyWhatMayNoticeTheBug(t *testing.T) {
	s := &script{broken: map[uint64]history{1: shows("13 clean", "linear"), 2: shows("13 clean", "8 ended", noEnd)}}
	v, _ := s.hunt(t, "8, no end")
	if v.err != nil || v.histories != 2 || strings.Join(v.noticed, " ") != "8 no end" || v.how != "it shows" {
		t.Errorf("hunt: %s", v)
	}
	s = &script{broken: map[uint64]history{1: shows("13 clean"), 3: shows("linear")}}
	if v, _ := s.hunt(t, "8"); !errors.Is(v.err, errNotFound) || v.histories != s.most() {
		t.Errorf("what breaks other invariants is found: %s", v)
	}
}

func TestHunt_WantsTheSoundProgramJudgedAndGreen(t *testing.T) {
	all := shows("8 ended")
	s := &script{
		broken: map[uint64]history{1: all, 2: all, 3: all},
		sound:  map[uint64]history{1: {}, 2: shows("13 clean")},
	}
	v, out := s.hunt(t, "8")
	if v.err != nil || v.histories != 3 {
		t.Errorf("hunt: %s", v)
	}
	for _, want := range []string{"seed 1, as it is: too little happened", "seed 2, as it is: 13 (it shows)"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

func TestHunt_EndsWithACrashAndWithAnErrorOfTheHarness(t *testing.T) {
	s := &script{broken: map[uint64]history{2: shows(panicked)}}
	if v, _ := s.hunt(t, "8"); v.err == nil || errors.Is(v.err, errNotFound) || v.histories != 2 {
		t.Errorf("of a crash: %s", v)
	}
	if v, _ := s.hunt(t, "8, panic"); v.err != nil {
		t.Errorf("of a crash that the bug is known for: %s", v)
	}
	s = &script{fails: 3}
	v, _ := s.hunt(t, "8")
	if v.err == nil || errors.Is(v.err, errNotFound) || !strings.Contains(v.err.Error(), "seed 3") {
		t.Errorf("of an error: %s", v)
	}
}

func TestHunt_EndsWithItsTime(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := &script{}
	verdicts, _ := looks(ctx, t.TempDir(), s, io.Discard, bug("no reconciliation", "8"))
	if !errors.Is(verdicts[0].err, context.Canceled) || s.judged.Load() != 0 {
		t.Errorf("hunt: %s", verdicts[0])
	}
}

// patient is a harness that judges only when so many are being judged.
type patient struct {
	script
	arrived atomic.Int64
	all     chan struct{}
}

func (*patient) most() int { return 1 }

func (p *patient) judge(ctx context.Context, program, mutation, faults string, seed uint64) (history, error) {
	if p.arrived.Add(1) == int64(cap(p.all)) {
		close(p.all)
	}
	select {
	case <-p.all:
		return p.script.judge(ctx, program, mutation, faults, seed)
	case <-time.After(time.Minute):
		return history{}, errors.New("nobody else came")
	}
}

func TestHunt_LooksForSimulatedBugsSideBySide(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		var bugs []planted
		for _, name := range []string{"no reconciliation", "retry after a cancel", "effects before the commit"} {
			bugs = append(bugs, bug(name, "8"))
		}
		p := &patient{all: make(chan struct{}, len(bugs))}
		verdicts, _ := looks(t.Context(), dir, p, io.Discard, bugs...)
		for _, v := range verdicts {
			if !errors.Is(v.err, errNotFound) {
				t.Errorf("%s: %v", v.name, v.err)
			}
		}
	})
}

func TestParse_JoinsTheTextAndRefusesNonsense(t *testing.T) {
	o, err := parse([]string{"--most", "3", "retry", "counted"}, io.Discard)
	if err != nil || o.text != "retry counted" || o.most != 3 {
		t.Errorf("parsed %+v, %v", o, err)
	}
	for _, args := range [][]string{{"--most", "-1"}, {"--limit", "0s"}, {"--harness", "none"}, {"--parallel", "0"}} {
		if _, err := parse(args, io.Discard); err == nil {
			t.Errorf("%q is accepted", slices.Clone(args))
		}
	}
}

func TestCourt_PrintsEveryVerdictAndReturnsWhatIsWrong(t *testing.T) {
	var out strings.Builder
	c := court{log: log.New(&out, "", 0), places: make(chan struct{}, 1)}
	is := func(f finding, err error) func() (finding, error) { return func() (finding, error) { return f, err } }
	c.judge(t.Context(), "one", simulated, is(finding{3, []string{"9", "10"}, "it shows"}, nil))
	c.judge(t.Context(), "two", real, is(finding{histories: 200}, errNotFound))
	c.judge(t.Context(), "three", "TestThree", is(finding{}, nil))
	err := c.close(t.Context())
	if !errors.Is(err, errNotFound) || !strings.Contains(err.Error(), "two") || strings.Contains(err.Error(), "one,") {
		t.Errorf("error: %v", err)
	}
	for _, want := range []string{
		"passed one, simulated: 3 histories: 9, 10: it shows\n", "FAILED two, real: not found\n",
		"passed three, TestThree\n", "2 of 3 passed\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}
