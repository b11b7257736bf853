package fronts

import "taskledger/internal/testkit"

// ToyRows are the rows that the toy front adds to existing files. It counts the ends of attempts in their entries,
// rings a bell at a time that it prepares beside the turns of an owner, and holds one task back. Its own files are
// below testdata/toy.
var ToyRows = []testkit.Edit{
	before("events/kinds.go", "	kindEnd\n)", "	KindToyCounted\n	KindToyRang\n"),
	before("events/kinds.go", "}\n\nfunc empty[", `	KindToyCounted:     {"ToyCounted", OfToy, empty[ToyCounted]},
	KindToyRang:        {"ToyRang", OfToy, empty[ToyRang]},
`),
	before("events/record.go", "	recordEnd\n)", "	OfToy\n"),
	before("events/record.go", "}\n\n// Records returns", `	OfToy:       "toy",`+"\n"),
	before("projection/extensions.go", ")\n\n// fronts make", `	"taskledger/projection/toy"`+"\n"),
	before("projection/extensions.go", "}\n\n// extensions holds", "	toy.Extend,\n"),
	before("engine/internal/commands/commands.go", ")\n\n// Table has", `	"taskledger/engine/internal/toyfront"`+"\n"),
	after("engine/internal/commands/commands.go", "works.Left],\n", "	42: command.Empty[toyfront.Ask],\n"),
	before("engine/extensions.go", ")\n\n// itemHints tell", `	"taskledger/engine/internal/toyfront"`+"\n"),
	after("engine/extensions.go", "stores.AtOwner(hints(itemHints)),\n", "		toyfront.AtOwner(func(uint64) {}),\n"),
	before("api/view/event.go", "	case *events.StoreForgotten:\n", `	case *events.ToyCounted:
		return object{"task": b.Task}
	case *events.ToyRang:
		return object{"for": b.For}
`),
}

// before puts text before the place of another one.
func before(file, place, text string) testkit.Edit {
	return testkit.Edit{File: file, Old: place, New: text + place}
}

// after puts text behind the place of another one.
func after(file, place, text string) testkit.Edit {
	return testkit.Edit{File: file, Old: place, New: place + text}
}
