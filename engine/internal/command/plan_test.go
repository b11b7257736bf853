package command_test

import (
	"errors"
	"testing"

	"taskledger/engine/internal/command"
	"taskledger/internal/message"
	"taskledger/internal/wire"
)

func TestPlanLetter_NamesABoundedNumberOfNodes(t *testing.T) {
	for n, sound := range map[int]bool{command.MaxPlanners: true, command.MaxPlanners + 1: false} {
		_, err := command.ReadMessage[command.PlanMessage](message.Encode(command.PlanMessage{Planners: make([]string, n)}))
		if (err == nil) != sound || !sound && !errors.Is(err, wire.ErrMalformed) {
			t.Errorf("%d nodes: %v", n, err)
		}
	}
}
