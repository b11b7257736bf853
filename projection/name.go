package projection

import "unique"

// Name is a text that many tasks share, each at the cost of a pointer; the zero Name is "".
type Name struct{ text unique.Handle[string] }

// NameOf returns the Name of a text. Equal texts have equal Names.
func NameOf(text string) Name {
	if text == "" {
		return Name{}
	}
	return Name{unique.Make(text)}
}

// String returns the text.
func (n Name) String() string {
	if n == (Name{}) {
		return ""
	}
	return n.text.Value()
}

// MarshalText is String.
func (n Name) MarshalText() ([]byte, error) { return []byte(n.String()), nil }
