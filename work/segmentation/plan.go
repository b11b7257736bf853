package segmentation

// The limits of a Plan.
const (
	// MaxBuckets bounds the number of buckets.
	MaxBuckets = 1_000_000_000
	// MaxBytes bounds Plan.Bytes, and with it the list of an explicit plan.
	MaxBytes = 192 << 10
	// ContentBytes is added to the texts of a content in Plan.Bytes.
	ContentBytes = 32
	// MaxPositions bounds the characters of a boundary: the number of alphabets times the depth.
	MaxPositions = 64
	// MaxAlphabetBytes bounds the bytes of all alphabets together.
	MaxAlphabetBytes = 4 << 10
)

// Plan says how a set is cut into buckets. The zero value has the kind None: one bucket holds everything. A field
// that the kind does not name is zero. Every encoding knows the types of the fields.
type Plan struct {
	Kind Kind

	// From and To bound the numbers of a Numeric plan: From <= n < To. So the highest number of int64 is in no bucket.
	From, To int64
	// Size is the highest number of items of a bucket of a Numeric plan, if each number from From on is one item: the
	// number of buckets is the least that allows it, and their sizes differ by one at most. 0: Buckets says it.
	Size int64
	// Buckets is the number of buckets of a Numeric plan, at most MaxBuckets. Their sizes differ by one at most. If the
	// range has fewer numbers than that, each number has a bucket. 0: Size says it.
	Buckets int64

	// Alphabets holds the characters of each position of the boundaries of an Interval plan, and of the texts of a
	// Prefix or Exact plan, such as "0-9a-z". A range of characters has a "-" between its first and its last one, and a
	// backslash makes the next character stand for itself. They ascend by their bytes, and none is there twice.
	//
	// With N combinations of one character of each position, Interval has N+1 buckets: the first has all texts below
	// the first combination, the last has the last combination and all texts above. Prefix and Exact have N buckets.
	Alphabets []string
	// Depth repeats Alphabets so many times, one set behind the other: "a-z" with the depth 2 has 676 combinations. An
	// OID plan has as many hexadecimal digits as that, "0-9a-f", and 16^Depth+1 buckets; the first one has the texts
	// below "0", and is empty for ids of lower-case digits. 0 stands for 1.
	Depth int64

	// Explicit lists the contents of the buckets of an Explicit plan, in the order in which they are worked on: either
	// each of the kind Numeric, or each of Interval, Prefix or Exact. No key may belong to two of them.
	Explicit []Content
}

// Total returns the exact number of buckets, 1 to MaxBuckets, and 0 for a plan that Validate refuses for its number of
// buckets, kind, range or alphabets.
func (p Plan) Total() int64 {
	switch p.Kind {
	case None:
		return 1
	case Numeric:
		if p.checkNumbers() != nil {
			return 0
		}
		return int64(p.numbers().total)
	case Interval, Prefix, Exact, OID:
		_, total, err := p.texts()
		if err != nil {
			return 0
		}
		return total
	case Explicit:
		return int64(len(p.Explicit))
	}
	return 0
}

// Bucket returns the bucket of a number, and false unless the number is 1 to Total. It takes time for the answer and
// for reading the plan's alphabets, whatever the number.
func (p Plan) Bucket(number int64) (Bucket, bool) {
	b := Bucket{Number: number}
	if number < 1 {
		return Bucket{}, false
	}
	switch p.Kind {
	case None:
		return b, number == 1
	case Interval, Prefix, Exact, OID:
		t, total, err := p.texts()
		if err != nil || number > total {
			return Bucket{}, false
		}
		b.Content = p.ofTexts(t, number-1, total)
		return b, true
	}
	if number > p.Total() {
		return Bucket{}, false
	}
	if p.Kind == Numeric {
		b.Content = p.numbers().content(uint64(number - 1))
	} else {
		b.Content = p.Explicit[number-1]
	}
	return b, true
}

// Bytes returns at least the bytes that the plan takes when it is encoded: those of its texts, ContentBytes for each
// content and 16 for each alphabet, and 64 for all else.
func (p Plan) Bytes() int64 {
	bytes := 64 + 16*len(p.Alphabets) + ContentBytes*len(p.Explicit)
	for _, text := range p.Alphabets {
		bytes += len(text)
	}
	for _, c := range p.Explicit {
		bytes += len(c.Lower) + len(c.Upper) + len(c.Text)
	}
	return int64(bytes)
}

// Covers reports whether every key of text lies in a bucket.
func (p Plan) Covers() bool { return p.Kind == None || p.Kind == Interval || p.Kind == OID }

func (p Plan) numbers() numbers { return cutNumbers(p.From, p.To, p.Size, p.Buckets) }

func (p Plan) ofTexts(t texts, i, total int64) Content {
	if p.Kind == Prefix || p.Kind == Exact {
		return Content{
			Kind: p.Kind,
			Text: t.at(i),
		}
	}
	return t.interval(i, total-1)
}
