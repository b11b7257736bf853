package projection

import (
	"crypto/sha256"
	"fmt"

	"taskledger/events"
	"taskledger/internal/wire"
)

// DigestForm names what digests of states depend on beside the state: those of programs with another form cannot be
// compared.
func DigestForm() string { return fmt.Sprintf("%d.%d", SnapshotVersion, events.FoldRules) }

// Digest is the sum of the hashes of all tasks and all other records, so that two folds can be compared without
// sorting either. It calls step, unless that is nil, every few milliseconds.
func (s *Shard) Digest(step func()) (sum events.Hash) {
	var w wire.Writer
	sums := 0
	add := func() {
		if sums++; sums%4096 == 0 && step != nil {
			step()
		}
		h := sha256.Sum256(w.B)
		carry := 0
		for i := len(sum) - 1; i >= 0; i-- {
			carry += int(sum[i]) + int(h[i])
			sum[i] = byte(carry)
			carry >>= 8
		}
		w.B = w.B[:0]
	}
	w.Int(int64(s.Time))
	add()
	for t := range s.Tasks() {
		t.Encode(&w)
		add()
	}
	for _, of := range s.sections() {
		rows, write := of.List()
		for i := range rows {
			w.Text(of.Name)
			write(i, &w)
			add()
		}
	}
	return sum
}
