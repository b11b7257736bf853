package openfiles_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"taskledger/cmd/node/internal/openfiles"
)

func TestShare_EverythingFitsTheLimitAndNobodyIsLeftOut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(openfiles.Least, 1<<20).Draw(t, "limit")
		w := openfiles.Wanted{Inside: rapid.Bool().Draw(t, "inside"), Slots: rapid.IntRange(0, 20_000).Draw(t, "slots"), Exec: rapid.IntRange(0, 20_000).Draw(t, "exec")}
		p, err := openfiles.Share(limit, w)
		if err != nil {
			t.Fatal(err)
		}
		others := min(2*(w.Slots-p.Exec), 2*2*p.Others)
		if sum := p.Connections + p.NATS + openfiles.Socket + openfiles.Metrics + 8*p.Exec + others + 192; sum > limit {
			t.Errorf("%d of %d: %+v of %+v", sum, limit, p, w)
		}
		if p.Connections < 48 || p.Connections > 12_000 || (p.NATS > 0) != w.Inside {
			t.Errorf("%+v of %+v", p, w)
		}
		if p.Exec > w.Exec || p.Others > w.Slots || (w.Slots > 0 && (p.Others == 0 || w.Exec > 0 && p.Exec == 0)) {
			t.Errorf("%+v of %+v", p, w)
		}
	})
}

func TestShare_WhatFitsIsAsWanted(t *testing.T) {
	p, err := openfiles.Share(20_000, openfiles.Wanted{Inside: true, Slots: 512, Exec: 512})
	if err != nil || p != (openfiles.Plan{Connections: 12_000, NATS: 1024, Exec: 512, Others: 512}) {
		t.Errorf("%+v, %v", p, err)
	}
}

func TestShare_RefusesALimitThatIsTooLow(t *testing.T) {
	if _, err := openfiles.Share(511, openfiles.Wanted{}); err == nil || !strings.Contains(err.Error(), "511 files, want at least 512") {
		t.Error(err)
	}
	if limit, err := openfiles.Limit(); err != nil || limit < 64 {
		t.Errorf("%d, %v", limit, err)
	}
}
