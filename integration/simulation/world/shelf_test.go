package world

import (
	"testing"

	"taskledger/store"
	"taskledger/store/archivetest"
)

func TestShelf_KeepsTheContractOfAnArchive(t *testing.T) {
	archivetest.Run(t, func(*testing.T) store.Archive { return newShelf() })
}
