package history

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Limits of what Load reads, so that a damaged or foreign folder cannot exhaust memory.
const (
	maxFileBytes = 1 << 30
	maxLineBytes = 4 << 20 // the largest entry in base64, four times over
	maxMembers   = 64
	maxShards    = 256
)

// journalLine is the first line of a journal's file, and every other one.
type journalLine struct {
	Member string  `json:",omitempty"` // of the first line
	Of     int     `json:",omitempty"` // of the first line: how many members there are
	Shards int     `json:",omitempty"` // of the first line
	Shard  int     `json:",omitempty"`
	Record *Record `json:",omitempty"`
}

// Save writes the run into a folder, which it makes, as JSON: info.json and remains.json, and a line for each value in
// operations.jsonl, items.jsonl, executions.jsonl, faults.jsonl, keys.jsonl, served.jsonl, damage.jsonl and, for each member, entries-<n>.jsonl. What a
// run saved there before is replaced.
func Save(dir string, r *Run) error {
	if len(r.Members) > maxMembers {
		return fmt.Errorf("save a run of %d members, at most %d are kept", len(r.Members), maxMembers)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("save a run: %w", err)
	}
	for i := range maxMembers {
		if err := os.Remove(journalFile(dir, i)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("save a run: %w", err)
		}
	}
	for i := range r.Members {
		if err := writeFile(journalFile(dir, i), r.Members[i].lines(len(r.Members))); err != nil {
			return err
		}
	}
	return errors.Join(
		writeFile(filepath.Join(dir, "operations.jsonl"), lines(r.Operations)),
		writeFile(filepath.Join(dir, "items.jsonl"), lines(r.Items)),
		writeFile(filepath.Join(dir, "executions.jsonl"), lines(r.Executions)),
		writeFile(filepath.Join(dir, "faults.jsonl"), lines(r.Faults)),
		writeFile(filepath.Join(dir, "keys.jsonl"), lines(r.Keys)),
		writeFile(filepath.Join(dir, "served.jsonl"), lines(r.Served)),
		writeFile(filepath.Join(dir, "damage.jsonl"), lines(r.Damage)),
		writeFile(filepath.Join(dir, "remains.json"), lines([]Remains{r.Remains})),
		writeFile(filepath.Join(dir, "info.json"), lines([]Info{r.Info})))
}

func journalFile(dir string, member int) string {
	return filepath.Join(dir, fmt.Sprintf("entries-%d.jsonl", member))
}

// lines encodes every value as one line.
func lines[T any](values []T) func(*json.Encoder) error {
	return func(e *json.Encoder) error {
		for i := range values {
			if err := e.Encode(&values[i]); err != nil {
				return err
			}
		}
		return nil
	}
}

func (j *Journals) lines(members int) func(*json.Encoder) error {
	return func(e *json.Encoder) error {
		if err := e.Encode(journalLine{Member: j.Member, Of: members, Shards: len(j.Entries)}); err != nil {
			return err
		}
		for shard := range j.Entries {
			for i := range j.Entries[shard] {
				if err := e.Encode(journalLine{Shard: shard, Record: &j.Entries[shard][i]}); err != nil {
					return err
				}
			}
		}
		return nil
	}
}

func writeFile(path string, encode func(*json.Encoder) error) error {
	f, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("save a run: %w", err)
	}
	w := bufio.NewWriter(f)
	if err := errors.Join(encode(json.NewEncoder(w)), w.Flush(), f.Close()); err != nil {
		return fmt.Errorf("save a run: %s: %w", filepath.Base(path), err)
	}
	return nil
}

// Load reads what Save wrote. Fields it does not know, lines beyond 4 MiB, files beyond 1 GiB and values that are corrupt
// are errors.
func Load(dir string) (*Run, error) {
	r := new(Run)
	var info []Info
	var remains []Remains
	err := errors.Join(
		readLines(filepath.Join(dir, "info.json"), &info),
		readLines(filepath.Join(dir, "operations.jsonl"), &r.Operations),
		readLines(filepath.Join(dir, "items.jsonl"), &r.Items),
		readLines(filepath.Join(dir, "executions.jsonl"), &r.Executions),
		readLines(filepath.Join(dir, "faults.jsonl"), &r.Faults),
		readLines(filepath.Join(dir, "keys.jsonl"), &r.Keys),
		readLines(filepath.Join(dir, "served.jsonl"), &r.Served),
		readLines(filepath.Join(dir, "damage.jsonl"), &r.Damage),
		readLines(filepath.Join(dir, "remains.json"), &remains))
	if err != nil {
		return nil, err
	}
	if len(info) != 1 || len(remains) != 1 {
		return nil, fmt.Errorf("load a run: %d values in info.json and %d in remains.json, want one each", len(info), len(remains))
	}
	r.Info, r.Remains = info[0], remains[0]
	r.Members, err = loadMembers(dir)
	return r, err
}

// loadMembers reads the journals of as many members as the first file says.
func loadMembers(dir string) (all []Journals, err error) {
	members := 0
	for i := 0; i < maxMembers; i++ {
		j, of, err := loadJournals(journalFile(dir, i))
		if errors.Is(err, os.ErrNotExist) {
			break
		}
		if err != nil {
			return nil, err
		}
		all, members = append(all, j), of
	}
	if len(all) != members {
		return nil, fmt.Errorf("load a run: the journals of %d members, want those of %d", len(all), members)
	}
	return all, nil
}

func loadJournals(path string) (j Journals, members int, err error) {
	first := true
	err = eachLine(path, func(line *journalLine) error {
		switch {
		case first:
			if line.Record != nil || line.Shards < 0 || line.Shards > maxShards {
				return fmt.Errorf("the first line names no member and %d shards", line.Shards)
			}
			first = false
			members, j.Member, j.Entries = line.Of, line.Member, make([][]Record, line.Shards)
			return nil
		case line.Record == nil || line.Shard < 0 || line.Shard >= len(j.Entries):
			return fmt.Errorf("no entry of one of %d shards", len(j.Entries))
		}
		j.Entries[line.Shard] = append(j.Entries[line.Shard], *line.Record)
		return nil
	})
	if err == nil && first {
		err = fmt.Errorf("load a run: %s is empty", filepath.Base(path))
	}
	return j, members, err
}

func readLines[T any](path string, into *[]T) error {
	return eachLine(path, func(v *T) error {
		*into = append(*into, *v)
		return nil
	})
}

// eachLine decodes the lines of a file strictly. It wraps os.ErrNotExist when there is no file.
func eachLine[T any](path string, use func(*T) error) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("load a run: %w", err)
	}
	defer f.Close()
	limited := &io.LimitedReader{R: f, N: maxFileBytes + 1}
	scanner := bufio.NewScanner(limited)
	scanner.Buffer(nil, maxLineBytes)
	for n := 1; scanner.Scan(); n++ {
		v := new(T)
		err := decodeStrictly(scanner.Bytes(), v)
		if err == nil {
			err = use(v)
		}
		if err != nil {
			return fmt.Errorf("load a run: %s, line %d: %w", filepath.Base(path), n, err)
		}
	}
	err = scanner.Err()
	if err == nil && limited.N == 0 {
		err = fmt.Errorf("longer than %d bytes", maxFileBytes)
	}
	if err != nil {
		return fmt.Errorf("load a run: %s: %w", filepath.Base(path), err)
	}
	return nil
}

func decodeStrictly(line []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("more than one value in a line")
	}
	return nil
}
