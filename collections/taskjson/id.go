package taskjson

import (
	"fmt"
	"strings"

	"github.com/google/uuid"

	"taskledger/events"
)

// IDOf returns the id of a run of a collection: "SOURCE_COLLECTION/UUID".
func IDOf(collection string, id uuid.UUID) events.TaskID {
	return events.TaskID(collection + "/" + id.String())
}

// Shown returns the id as callers have it: "SOURCE_COLLECTION_UUID", which stands in paths as it is.
func Shown(id events.TaskID) (string, error) {
	collection, name, _ := strings.Cut(string(id), "/")
	if !isUUID(name) || events.ValidateSchedule(collection) != nil {
		return "", fmt.Errorf("task id %q: want SOURCE_COLLECTION/UUID", events.Head(string(id), events.MaxIDBytes))
	}
	return collection + "_" + name, nil
}

// Read is the reverse of Shown. No UUID has a "_", so an id has one reading.
func Read(text string) (events.TaskID, error) {
	i := max(strings.LastIndexByte(text, '_'), 0)
	id := events.TaskID(text[:i] + "/" + strings.TrimPrefix(text[i:], "_"))
	if _, err := Shown(id); err != nil || i == 0 {
		return "", fmt.Errorf("task id %q: want SOURCE_COLLECTION_UUID", events.Head(text, events.MaxIDBytes))
	}
	return id, nil
}

// isUUID accepts the one form that IDOf writes.
func isUUID(text string) bool {
	id, err := uuid.Parse(text)
	return err == nil && id.String() == text
}
