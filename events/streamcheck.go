package events

import (
	"errors"
	"fmt"
	"unicode/utf8"
)

// CheckToken returns an error for a token that no stream may have.
func CheckToken(token string) error {
	if n := len(token); n > MaxTokenBytes {
		return fmt.Errorf("token: %d bytes exceed the limit of %d", n, MaxTokenBytes)
	}
	return nil
}

func (b *TokenMoved) check() error {
	const most = 1 << 53
	switch {
	case b.Attempt == 0:
		return errors.New("a token moves without an attempt")
	case b.Simulated && b.Token == "":
		return errors.New("the end of a simulation without a token")
	case b.Open > most:
		return fmt.Errorf("%d changes are open, want %d at most", b.Open, uint64(most))
	case b.Oldest < 0 || b.Oldest > MaxItemTime:
		return fmt.Errorf("time %d of the oldest change, want 0 to %d", b.Oldest, MaxItemTime)
	}
	if err := CheckToken(b.Token); err != nil {
		return err
	}
	return CheckItems(b.Items, b.Errors)
}

func (b *ChangeHeld) check() error {
	if b.Attempt == 0 || b.Hold == 0 {
		return fmt.Errorf("hold %d of attempt %d", b.Hold, b.Attempt)
	}
	if err := checkPartitionNumber(b.Partition); err != nil {
		return err
	}
	return CheckHeld(b.Key, b.At, b.Data, b.Code, b.Message)
}

// CheckHeld returns an error for a change that no hold may have.
func CheckHeld(key, at string, data []byte, code, message string) error {
	switch {
	case key == "" || len(key) > MaxChangeKeyBytes:
		return fmt.Errorf("key of a change: %d bytes, want 1 to %d", len(key), MaxChangeKeyBytes)
	case len(at) > MaxTokenBytes:
		return fmt.Errorf("name of a change: %d bytes exceed the limit of %d", len(at), MaxTokenBytes)
	case len(data) > MaxHeldBytes:
		return fmt.Errorf("data of a change: %d bytes exceed the limit of %d", len(data), MaxHeldBytes)
	case len(code) > MaxNameBytes || !utf8.ValidString(code):
		return fmt.Errorf("code %q of a change: want %d bytes at most, of UTF-8", Head(code, MaxNameBytes), MaxNameBytes)
	case len(message) > MaxHeldMessageBytes || !utf8.ValidString(message):
		const say = "message of a change: %d bytes, want %d at most, of UTF-8"
		return fmt.Errorf(say, len(message), MaxHeldMessageBytes)
	}
	return nil
}

func (b *HoldMoved) check() error {
	switch {
	case b.Hold == 0:
		return errors.New("hold 0")
	case b.Done > MaxHeldChanges:
		return fmt.Errorf("%d changes of a hold, want %d at most", b.Done, MaxHeldChanges)
	case b.Done == 0 && !b.Ended:
		return fmt.Errorf("hold %d does not move", b.Hold)
	}
	return nil
}
