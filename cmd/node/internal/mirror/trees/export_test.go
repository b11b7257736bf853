package trees

import "context"

// Delete deletes an entry of the target that Items has yielded a moment ago.
func (p *Pair) Delete(ctx context.Context, at string) (skipped string, err error) {
	return p.delete(ctx, at)
}
