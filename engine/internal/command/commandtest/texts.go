package commandtest

import (
	"strings"

	"taskledger/events"
)

// Texts of the largest size.
var (
	id       = events.TaskID(strings.Repeat("i", events.MaxIDBytes))
	name     = strings.Repeat("n", events.MaxNameBytes)
	behavior = strings.Repeat("b", events.MaxBehaviorBytes)
	payload  = events.JSON([]byte(`"` + strings.Repeat("p", events.MaxPayloadBytes-2) + `"`))
)
