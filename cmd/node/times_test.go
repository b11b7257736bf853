package main_test

import (
	"regexp"
	"strings"
	"testing"
	"time"
)

// printedTime matches a time as tables show it.
var printedTime = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)`)

// details matches the JSON text of an event, which has times as the journal has them.
var details = regexp.MustCompile(`\{.*\}`)

// Every table shows local times with their zone, and every flag of a time takes them as they are shown.
func TestCommands_PrintLocalTimesThatEveryFlagTakes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	serve(t, dir, "--name", "a", "--api", "127.0.0.1:0")
	must(t, dir, "submit", "noop", "--id", "one", "--delay", "1h", "--deadline", "2h")
	must(t, dir, "pause", "noop", "--reason", "x")
	must(t, dir, "schedule", "set", "hourly", "--cron", "@hourly", "--behavior", "noop")
	must(t, dir, "token", "new", "ci", "--role", "viewer")
	inZone := func(args ...string) result {
		cmd := command(t.Context(), dir, args...)
		cmd.Env = append(cmd.Env, "TZ=Asia/Kolkata")
		return finish(t, cmd)
	}
	shown := ""
	for _, shows := range []string{
		"list", "get one", "explain one", "history one", "state one --seq 1", "nodes", "settings", "behaviors",
		"schedule list", "schedule get hourly", "token list", "ui",
	} {
		r := inZone(words(shows)...)
		times := printedTime.FindAllString(details.ReplaceAllString(r.out, ""), -1)
		if r.code != 0 || len(times) == 0 {
			t.Errorf("%s: it shows no time: %+v", shows, r)
		}
		for _, at := range times {
			if _, err := time.Parse(time.RFC3339, at); err != nil || !strings.HasSuffix(at, "+05:30") && shows != "schedule get hourly" {
				t.Errorf("%s: it shows %s", shows, at)
			}
		}
		if shows == "list" && len(times) > 0 {
			shown = times[0]
		}
	}
	for _, asks := range []string{
		"list --created-from AT", "list --created-to AT", "list --ended-from AT", "list --ended-to AT",
		"cancel --filter created-from=AT",
		"state one --at AT", "replay --since AT", "replay --until AT", "logs one --since AT", "logs one --until AT",
		"submit noop --at AT", "submit noop --deadline AT --id two", "schedule backfill hourly AT 0s",
		"schedule set starts --cron @hourly --behavior noop --start AT",
		"schedule set ends --cron @hourly --behavior noop --end AT",
	} {
		for _, at := range []string{shown, "10m", time.Now().UTC().Format(time.RFC3339)} {
			if r := inZone(words(strings.ReplaceAll(asks, "AT", at))...); r.code == 2 && strings.Contains(r.err, "want a time such as") {
				t.Errorf("%s with %s: %+v", asks, at, r)
			}
		}
	}
}
