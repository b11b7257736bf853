package builtin_test

import (
	"encoding/json"
	"testing"
	"time"

	"taskledger/behaviors/builtin"
)

func TestDuration_TravelsAsText(t *testing.T) {
	raw, err := json.Marshal(builtin.SleepParams{Duration: builtin.Duration(90 * time.Second)})
	if err != nil || string(raw) != `{"duration":"1m30s"}` {
		t.Errorf("%s, %v", raw, err)
	}
	var p builtin.SleepParams
	if err := json.Unmarshal(raw, &p); err != nil || time.Duration(p.Duration) != 90*time.Second {
		t.Errorf("%v, %v", p, err)
	}
	for _, bad := range []string{`{"duration":5}`, `{"duration":"5"}`, `{"duration":"-1s"}`} {
		if _, err := builtin.Sleep().Plan([]byte(bad), epoch); err == nil {
			t.Errorf("%s was accepted", bad)
		}
	}
}
