package ledger

import (
	"fmt"

	"taskledger/events"
	"taskledger/projection/journal"
)

// Damage is a kind of damage that Verify and VerifyExport can find.
type Damage string

// The kinds of damage. Those that speak of an entry mean the one that Verification.At names.
const (
	DamageGarbled    Damage = "garbled"              // bytes were flipped: they contradict the entry's own hash, or are corrupt
	DamageVersion    Damage = "unknown version"      // a version of the program wrote it that this one does not read
	DamageMissing    Damage = "missing entry"        // it is neither in the journal nor in the archive, or not where it has to be
	DamageOrder      Damage = "out of order"         // another entry is stored in its place
	DamageChain      Damage = "broken chain"         // it does not continue the entry before
	DamageTransition Damage = "illegal transition"   // it holds an event that the state of its task or record does not allow
	DamageShard      Damage = "wrong shard"          // it holds an event of an id that belongs to another shard
	DamageLoss       Damage = "false loss"           // it records a loss that other entries contradict
	DamageSnapshot   Damage = "snapshot differs"     // a snapshot cannot be read, or is not the fold of the entries up to it
	DamageState      Damage = "state differs"        // what the owner serves is not the fold of the entries
	DamageArchive    Damage = "archive differs"      // the archive continues otherwise than the journal, or holds other bytes
	DamageCheckpoint Damage = "differs from history" // a checkpoint has another hash: an entry up to this was replaced
)

// Verification holds the findings of Verify about a shard.
type Verification struct {
	Shard     int         `json:"shard"`
	From      uint64      `json:"from"`    // the first entry checked; above 1, a snapshot stands for those before
	Entries   uint64      `json:"entries"` // number of the last one that was read and applied
	Events    uint64      `json:"events"`
	Tasks     int         `json:"tasks"`
	Hash      events.Hash `json:"hash"`              // of the last entry
	Compared  bool        `json:"compared"`          // the owner answered, and its state was compared with the fold
	Snapshots int         `json:"snapshots"`         // number of snapshots that were compared with the fold, or that it began with
	Heads     int         `json:"heads"`             // number of heads of checkpoints that were compared
	ProvedTo  uint64      `json:"proved_to"`         // the last entry that a head was compared with; 0 = the checkpoints prove nothing
	Dropped   int         `json:"dropped,omitempty"` // heads whose entries were dropped by rule, and are not compared
	// Unproved tells in words what the checkpoints do not prove; "" = they prove all, or none was given.
	Unproved string         `json:"unproved,omitempty"`
	Unknown  bool           `json:"unknown,omitempty"`   // no owner tells whether entries before From were dropped
	Archived uint64         `json:"archived,omitempty"`  // number of archived entries that were compared with the journal
	Losses   []journal.Loss `json:"losses,omitempty"`    // entries that were given up or lost, as the journal records it: no damage
	Damage   Damage         `json:"damage,omitempty"`    // the first damage; "" = none
	At       uint64         `json:"damage_at,omitempty"` // number of the entry with the damage
	Problem  string         `json:"problem,omitempty"`   // the damage in words; "" = none
}

// damaged notes the first damage.
func (v *Verification) damaged(kind Damage, entry uint64, format string, args ...any) {
	if v.Damage == "" {
		v.Damage, v.At = kind, entry
		v.Problem = fmt.Sprintf("entry %d: %s: %s", entry, kind, fmt.Sprintf(format, args...))
	}
}
