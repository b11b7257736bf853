package shard

import (
	"errors"

	"taskledger/events"
	"taskledger/projection"
	"taskledger/store"
)

// DamageError is damage of which the entry is known.
type DamageError struct {
	Entry uint64
	err   error
}

func (e *DamageError) Error() string { return e.err.Error() }
func (e *DamageError) Unwrap() error { return e.err }

// damagedAt adds the entry to an error that means damage.
func damagedAt(entry uint64, err error) error {
	var known *DamageError
	if !IsDamage(err) || errors.As(err, &known) {
		return err
	}
	return &DamageError{entry, err}
}

// IsDamage reports that what is stored is corrupt. What a store that is broken has met it alone can tell.
func IsDamage(err error) bool {
	if errors.Is(err, store.ErrBroken) {
		return false
	}
	var t *projection.TransitionError
	return errors.Is(err, events.ErrDamaged) || errors.Is(err, projection.ErrChain) ||
		errors.Is(err, store.ErrAlien) || errors.As(err, &t)
}
