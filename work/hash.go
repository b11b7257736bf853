package work

import "crypto/sha256"

// hash returns the hash of all that is data in the definition. The functions are code, which no hash can tell apart: it
// knows which of them are there.
func (w *Work[P, I]) hash() string {
	h := hasher{sha256.New()}
	h.text("taskledger work 1", w.id)
	h.number(int64(len(w.partitions)))
	for i := range w.partitions {
		p := &w.partitions[i]
		h.partition(p.plan())
		h.number(flag(p.Key != nil), flag(p.Count != nil), int64(len(p.Rules)))
		for _, r := range p.Rules {
			h.text(r.Code)
			h.number(int64(r.React), r.Times, int64(r.Backoff))
		}
		if p.flow != nil {
			p.flow.sum(h)
		}
	}
	return definitionText(h.Sum(nil))
}
