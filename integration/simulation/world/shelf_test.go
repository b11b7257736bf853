package world

import (
	"testing"

	"taskledger/engine"
	"taskledger/engine/archivetest"
)

func TestShelf_KeepsTheContractOfAnArchive(t *testing.T) {
	archivetest.Run(t, func(*testing.T) engine.Archive { return newShelf() })
}
