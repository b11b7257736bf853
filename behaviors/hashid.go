package behaviors

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"strings"

	"taskledger/events"
)

const (
	// hashIDChars are 130 bits: two ids do not meet by chance.
	hashIDChars = 26
	// maxAffinityBytes is the longest affinity that HashID takes as it is.
	maxAffinityBytes = 64
)

// HashID makes the id of a task from what distinguishes it, for Rules.TaskID and task.SubmitOptions. Equal affinities
// and parts make equal ids, in every process and release, and so join in one task. The parts may be any texts, such as
// names of tables. They are told apart from each other: ("a", "bc") and ("ab", "c") are two tasks. An id belongs to one
// behavior only, so let one part name the behavior.
//
// The id is "affinity/hash", or "hash" for the affinity "", where hash has 26 characters of [a-z2-7]. All tasks of an
// affinity are in one shard, so give one only to tasks that belong together, such as those of a tenant. An affinity
// that is longer than 64 bytes, or has other characters than [A-Za-z0-9._:-], is replaced by its hash.
func HashID(affinity string, parts ...string) events.TaskID {
	id := events.TaskID(hashOf(parts))
	switch {
	case affinity == "":
		return id
	case len(affinity) > maxAffinityBytes, strings.Contains(affinity, "/"), events.TaskID(affinity).Validate() != nil:
		affinity = hashOf([]string{affinity})
	}
	return events.TaskID(affinity) + "/" + id
}

// hashOf is the beginning of the SHA-256 sum, in base32, of the texts, each after its length in 8 bytes, big-endian.
func hashOf(texts []string) string {
	sum := sha256.New()
	for _, text := range texts {
		sum.Write(binary.BigEndian.AppendUint64(nil, uint64(len(text))))
		sum.Write([]byte(text))
	}
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum.Sum(nil)))[:hashIDChars]
}
