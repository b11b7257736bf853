package flags_test

import (
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"taskledger/cmd/node/internal/exitcode"
	"taskledger/cmd/node/internal/flags"
)

// Stored, the beginning of 1970 and the zero time mean that there is no time.
func TestTime_RefusesWhatWouldMeanNone(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"0001-01-01T00:00:00Z", "1969-12-31T23:59:59Z", "1970-01-01T00:00:00Z", "1970-01-01T01:00:00+01:00"} {
		_, err := flags.Time("--at", text, flags.Ago)
		if exitcode.Of(err) != exitcode.Usage || !strings.Contains(err.Error(), "--at "+text+": want a time after 1970") {
			t.Errorf("%s: %v", text, err)
		}
	}
	if at, err := flags.Time("--at", "1970-01-01T00:00:00.001Z", flags.Ago); err != nil || at.UnixMilli() != 1 {
		t.Errorf("the first time: %v, %v", at, err)
	}
	if at, err := flags.Time("--at", "", flags.Ago); err != nil || !at.IsZero() {
		t.Errorf("no time: %v, %v", at, err)
	}
}

func TestNotEmpty_TakesNoEmptyFlagButThoseThatMayBe(t *testing.T) {
	t.Parallel()
	set := pflag.NewFlagSet("reset", pflag.ContinueOnError)
	set.String("reason", "", "")
	set.String("token", "", "")
	flags.MayBeEmpty(set, "token")
	if err := set.Parse([]string{"--token="}); err != nil || flags.NotEmpty(set) != nil {
		t.Errorf("one that may be empty: %v, %v", err, flags.NotEmpty(set))
	}
	if err := set.Parse([]string{"--reason="}); err != nil || exitcode.Of(flags.NotEmpty(set)) != exitcode.Usage {
		t.Errorf("one that may not: %v, %v", err, flags.NotEmpty(set))
	}
}

func TestTime_TakesADurationForATimeThatIsSoFarAway(t *testing.T) {
	t.Parallel()
	for reach, sign := range map[flags.Reach]time.Duration{flags.Ago: -1, flags.FromNow: 1} {
		for text, length := range map[string]time.Duration{"10m": 10 * time.Minute, "1h30m": 90 * time.Minute, "0s": 0} {
			before := time.Now()
			at, err := flags.Time("--at", text, reach)
			if early := at.Sub(before.Add(sign * length)); err != nil || early < 0 || early > time.Since(before) {
				t.Errorf("%s, reach %d: %s, %v", text, reach, at, err)
			}
		}
		for _, text := range []string{"-10m", "10", "noon", "2026-11-21", "2026-11-21T12:00:00"} {
			_, err := flags.Time("--at", text, reach)
			if exitcode.Of(err) != exitcode.Usage || !strings.Contains(err.Error(), "or a duration such as 10m") {
				t.Errorf("%s: %v", text, err)
			}
		}
	}
}
