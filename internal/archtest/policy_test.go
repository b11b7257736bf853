package archtest_test

import (
	"context"
	"go/types"
	"sync"
	"testing"

	"taskledger/internal/archtest"
)

// The numbers below bound how large things may get. A package's own number marks an exception: it only falls, and goes
// when its package no longer needs it.

// circles bounds by package the files that form a circle: each uses, directly or through the others, what every other
// one declares.
var circles = archtest.Limits{
	"...": 3,

	"api/stores":                     4,
	"behaviors":                      7,
	"behaviors/builtin":              6,
	"engine":                         15,
	"engine/internal/command":        6,
	"engine/internal/sender":         10,
	"engine/internal/shard":          10,
	"engine/internal/stores":         4,
	"engine/internal/worker":         8,
	"events":                         5,
	"integration/robustness/check":   4,
	"integration/robustness/cluster": 6,
	"integration/robustness/fault":   4,
	"internal/modeletcd":             6,
	"internal/testcluster":           6,
	"projection":                     8,
	"projection/items":               6,
	"projection/schedules":           4,
	"taskstore/taskstoretest":        7,
}

// clauseComments bounds the comments of the module, tests included, that read "X is what ...". It may only fall.
const clauseComments = 35

// crowdedLiterals bounds the literals of structs outside of tests and below engine that give more than manyFields and
// put two of them on one line. It may only fall.
const (
	crowdedLiterals = 222
	manyFields      = 3
)

// exportedNames bounds the exported names of the packages that users read first.
var exportedNames = archtest.Limits{
	"behaviors": 21,
	"cluster":   5,
	"engine":    21,
}

// structFields bounds the fields of every struct of the module. A larger one has parts that deserve a name.
const structFields = 25

// unions lists the structs that may hold all ports of a kind in one field: configurations, which callers fill with the
// one thing that they have; structs that hand such a thing out; and structs that implement it by altering a little of
// another. Every other struct names the ports that it needs.
var unions = []string{
	"api.Config",
	"cluster.Cluster",
	"engine.ClientConfig",
	"engine.NodeConfig",
	"internal/connection.Opened",
	"store/transfer.Config",

	"store/archivetest.world",
	"store/storetest.Fixture",
	"store/storetest.ReceiverFixture",

	"cmd/node/internal/connect.Receiving",
	"cmd/node/internal/connect.Sending",
	"integration/simulation/world.sized",
}

// foldFree lists the packages whose users meet no type of the fold: they get task.Task and its like.
var foldFree = []string{
	"api/operations",
	"behaviors",
	"bulk",
	"engine",
	"task",
	"taskstore",
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

func TestProject_StructsHaveFewFields(t *testing.T) {
	report(t, load(t).Structs(structFields))
}

func TestProject_FilesStandApartAndFieldsAreNarrow(t *testing.T) {
	types := loadTypes(t)
	report(t, types.Circles(circles))
	report(t, types.Unions(unions...))
	report(t, types.Surface("projection", foldFree))
}

func TestProject_LargeLiteralsHaveALineAField(t *testing.T) {
	report(t, loadTypes(t).Literals(manyFields, crowdedLiterals, "engine"))
}

func loadTypes(t *testing.T) *archtest.Types {
	t.Helper()
	types, err := load(t).Types(exports(t))
	if err != nil {
		t.Fatal(err)
	}
	return types
}
