package archtest_test

import (
	"context"
	"go/types"
	"sync"
	"testing"

	"taskledger/internal/archtest"
)

// What follows is how large things may get. A number of its own is an exception: it may fall and never grow, and goes when its
// package no longer needs it.

// circles are the files of a package each of which uses, directly or through the others, what every other one declares.
var circles = archtest.Limits{
	"...": 15,
	"api": 16,
}

// exportedNames are those of a package that its users read first.
var exportedNames = archtest.Limits{
	"engine": 46,
}

// unions are the structs with a field that is all ports of a kind at once: configurations, which callers fill with the one thing
// that they have, what hands such a thing out, and those that are one themselves and alter a little of it. Every other struct
// names the ports that it needs.
var unions = []string{
	"api.Config",
	"cluster.Cluster",
	"engine.ClientConfig",
	"engine.NodeConfig",

	"store/archivetest.world",
	"store/storetest.Fixture",

	"cmd/node/internal/bench.turns",
	"cmd/node/internal/bench.unsnapshotted",
	"integration/simulation/world.sized",
}

var compiled = sync.OnceValues(func() (types.Importer, error) { return archtest.Exports(context.Background(), root) })

func exports(t *testing.T) types.Importer {
	t.Helper()
	foreign, err := compiled()
	if err != nil {
		t.Fatal(err)
	}
	return foreign
}

func TestProject_ExportsFewNames(t *testing.T) {
	report(t, load(t).Exported(exportedNames))
}

func TestProject_FilesStandApartAndFieldsAreNarrow(t *testing.T) {
	types, err := load(t).Types(exports(t))
	if err != nil {
		t.Fatal(err)
	}
	report(t, types.Circles(circles))
	report(t, types.Unions(unions...))
}
