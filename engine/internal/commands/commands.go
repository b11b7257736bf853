// Package commands lists the commands and questions of all fronts.
package commands

import (
	"taskledger/engine/internal/command"
	"taskledger/engine/internal/schedules"
	"taskledger/engine/internal/stores"
	"taskledger/engine/internal/works"
)

// Table has every command by its number. The numbers travel: none is ever used again for another command.
var Table = command.Table{
	1:  command.Empty[command.Submit],
	2:  command.Empty[command.Merge],
	3:  command.Empty[command.Complete],
	4:  command.Empty[command.Progress],
	5:  command.Empty[command.Operate],
	6:  command.Empty[command.Pause],
	7:  command.Empty[command.Offer],
	8:  command.Empty[command.Reconcile],
	9:  command.Empty[command.HandOver],
	10: command.Empty[command.Get],
	11: command.Empty[command.Await],
	12: command.Empty[command.List],
	13: command.Empty[command.Info],
	14: command.Empty[command.Explain],
	15: command.Empty[command.Plan],
	16: command.Empty[command.Barrier],
	17: command.Empty[command.Settings],
	18: command.Empty[command.Tally],
	19: command.Empty[stores.Update],
	20: command.Empty[stores.Claim],
	21: command.Empty[stores.Read],
	22: command.Empty[stores.Page],
	23: command.Empty[stores.Groups],
	24: command.Empty[stores.Await],
	25: command.Empty[schedules.Set],
	26: command.Empty[schedules.Steer],
	27: command.Empty[schedules.Run],
	28: command.Empty[schedules.Backfill],
	29: command.Empty[schedules.Get],
	30: command.Empty[schedules.List],
	31: command.Empty[works.Plan],
	32: command.Empty[works.Begin],
	33: command.Empty[works.Bucket],
	34: command.Empty[works.Permits],
	35: command.Empty[works.Reset],
	36: command.Empty[works.Rerun],
	37: command.Empty[works.Show],
	38: command.Empty[works.Move],
	39: command.Empty[works.Held],
	40: command.Empty[works.Position],
	41: command.Empty[works.Left],
}
