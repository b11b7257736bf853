package work

import (
	"encoding/json"
	"fmt"
)

// heldChange is a change as a hold has it.
type heldChange[C any] struct {
	Key   string `json:"key"`
	Token string `json:"token,omitempty"`
	Value C      `json:"value"`
	// Unread tells why the change could not be read.
	Unread string `json:"unread,omitempty"`
	Code   string `json:"code,omitempty"` // of Unread
}

// encodeHeld returns a change as a hold takes it.
func encodeHeld(c any) ([]byte, error) {
	data, err := json.Marshal(c)
	switch {
	case err != nil:
		return nil, refuse("change", "its value cannot be held: %v", err)
	case len(data) > MaxHeldBytes:
		return nil, refuse("change", "%d bytes to be held exceed the limit of %d", len(data), MaxHeldBytes)
	}
	return data, nil
}

func decodeHeld[C any](data []byte) (c heldChange[C], err error) {
	if err := json.Unmarshal(data, &c); err != nil {
		return c, fmt.Errorf("decoding a held change: %w", err)
	}
	return c, nil
}
