package work

import (
	"fmt"

	"taskledger/events"
)

func refuse(field, format string, args ...any) error {
	return &events.InvalidError{
		Field:   field,
		Problem: fmt.Sprintf(format, args...),
	}
}
