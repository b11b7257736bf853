package flags_test

import (
	"strings"
	"testing"

	"taskledger/cmd/node/internal/exitcode"
	"taskledger/cmd/node/internal/flags"
)

// Stored, the beginning of 1970 and the zero time mean that there is no time.
func TestTime_RefusesWhatWouldMeanNone(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"0001-01-01T00:00:00Z", "1969-12-31T23:59:59Z", "1970-01-01T00:00:00Z", "1970-01-01T01:00:00+01:00"} {
		_, err := flags.Time("at", text)
		if exitcode.Of(err) != exitcode.Usage || !strings.Contains(err.Error(), "--at "+text+": want a time after 1970") {
			t.Errorf("%s: %v", text, err)
		}
	}
	if at, err := flags.Time("at", "1970-01-01T00:00:00.001Z"); err != nil || at.UnixMilli() != 1 {
		t.Errorf("the first time: %v, %v", at, err)
	}
	if at, err := flags.Time("at", ""); err != nil || !at.IsZero() {
		t.Errorf("no time: %v, %v", at, err)
	}
}
