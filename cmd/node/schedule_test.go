package main_test

import (
	"strings"
	"testing"
)

func TestSchedule_IsSetSteeredAndShownByCommands(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	serve(t, dir)
	in := func(args ...string) string {
		t.Helper()
		return must(t, dir, append([]string{"schedule"}, args...)...)
	}
	yearly := func(more ...string) []string {
		return append([]string{"set", "yearly", "--cron", "@yearly", "--behavior", "noop"}, more...)
	}
	for _, want := range []string{"made ", "unchanged "} {
		if got := in(yearly()...); !strings.HasPrefix(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := in(yearly("--keep", "7")...); !strings.HasPrefix(got, "changed ") {
		t.Errorf("%q", got)
	}
	if got := objects(t, in("list", "-o", "json")); len(got) != 1 || got[0]["name"] != "yearly" {
		t.Errorf("%v", got)
	}
	id := in("run", "yearly", "--key", "k")
	if must(t, dir, "wait", id); !strings.HasPrefix(id, "yearly/run:") {
		t.Errorf("%q", id)
	}
	if again := in("run", "yearly", "--key", "k"); again != id {
		t.Errorf("run %s, and %s under the same key", id, again)
	}
	in("pause", "yearly", "--reason", "moving house")
	if got := in("get", "yearly"); !strings.Contains(got, "moving house") || !strings.Contains(got, "paused") {
		t.Errorf("%q", got)
	}
	in("resume", "yearly")
	got := in("backfill", "yearly", "2020-01-01T00:00:00Z", "2021-06-01T00:00:00Z", "-o", "json")
	if got != `{"ticks":2}` {
		t.Errorf("%q", got)
	}
	for _, c := range []struct {
		code int
		args []string
	}{
		{0, []string{"next", "@daily"}},
		{2, []string{"next", "0 3 * * *"}},
		{2, []string{"set", "a/b", "--cron", "@daily", "--behavior", "noop"}},
		{3, []string{"get", "nobody"}},
		{5, yearly("--if-version", "1")},
		{5, []string{"set", "other", "--cron", "@daily", "--behavior", "unheard-of"}},
		{0, []string{"delete", "yearly"}},
		{3, []string{"delete", "yearly"}},
	} {
		if r := run(t, dir, append([]string{"schedule"}, c.args...)...); r.code != c.code {
			t.Errorf("%q: %+v, want exit code %d", c.args, r, c.code)
		}
	}
}
