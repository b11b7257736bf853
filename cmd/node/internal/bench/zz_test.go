package bench

import (
	"testing"
	"time"
)

func TestZZ(t *testing.T) {
	r, err := Logs(t.Context(), LogsConfig{InFlight: 1000, Lines: 1, Duration: 16 * time.Second})
	t.Logf("%+v %v", r, err)
}
