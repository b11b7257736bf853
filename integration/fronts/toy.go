package fronts

import "taskledger/integration/bugs"

// ToyRows are the rows that the toy front adds to existing files. It counts the ends of attempts in their entries,
// rings a bell at a time that it prepares beside the turns of an owner, and holds one task back. Its own files are
// below testdata/toy.
var ToyRows = []bugs.Bug{
	row("events/kinds.go",
		insert("	kindEnd\n)", "	KindToyCounted\n	KindToyRang\n"),
		insert("}\n\nfunc empty[", `	KindToyCounted:     {"ToyCounted", OfToy, empty[ToyCounted]},
	KindToyRang:        {"ToyRang", OfToy, empty[ToyRang]},
`)),
	row("events/record.go",
		insert("	recordEnd\n)", "	OfToy\n"),
		insert("}\n\n// Records returns", `	OfToy:       "toy",
`)),
	row("projection/extensions.go",
		insert(")\n\n// fronts make", `	"taskledger/projection/toy"
`),
		insert("}\n\n// extensions holds", "	toy.Extend,\n")),
	row("engine/internal/commands/commands.go",
		insert(")\n\n// Table has", `	"taskledger/engine/internal/toyfront"
`),
		bugs.Edit{Old: "works.Left],\n", New: "works.Left],\n	42: command.Empty[toyfront.Ask],\n"}),
	row("engine/extensions.go",
		insert(")\n\n// itemHints tell", `	"taskledger/engine/internal/toyfront"
`),
		bugs.Edit{Old: "stores.AtOwner(hints(itemHints)),\n", New: "stores.AtOwner(hints(itemHints)),\n		toyfront.AtOwner(func(uint64) {}),\n"}),
	row("api/view/event.go",
		bugs.Edit{Old: "	case *events.StoreForgotten:\n", New: `	case *events.ToyCounted:
		return object{"task": b.Task}
	case *events.ToyRang:
		return object{"for": b.For}
	case *events.StoreForgotten:
`}),
}

func row(file string, edits ...bugs.Edit) bugs.Bug {
	return bugs.Bug{Name: "row of the toy front", File: file, Edits: edits}
}

// insert puts text before what a table ends with.
func insert(end, text string) bugs.Edit { return bugs.Edit{Old: end, New: text + end} }
