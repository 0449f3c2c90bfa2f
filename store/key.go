package store

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"strings"
)

// These bound the texts of a key, in bytes.
const (
	MaxJobBytes  = 64
	MaxNameBytes = 128
	// MaxKeyBytes bounds the output of AppendKey: job, NUL, three numbers, name.
	MaxKeyBytes = MaxJobBytes + 1 + 12 + MaxNameBytes
)

// Key identifies one value. Keys are ordered by their fields, first to last.
type Key struct {
	// Job has 1 to 64 bytes of [A-Za-z0-9._-], and begins with a letter or digit.
	Job string
	// Step is the step of the job that wrote the value.
	Step uint32
	// Task is the number of the task within the step.
	Task uint32
	// Attempt is the attempt that wrote the value. Attempts count from 1.
	Attempt uint32
	// Name has 1 to 128 bytes: parts of [A-Za-z0-9._-]+ with "/" between them.
	Name string
}

// String formats the key for messages.
func (k Key) String() string {
	return fmt.Sprintf("%q step %d task %d attempt %d %q", k.Job, k.Step, k.Task, k.Attempt, k.Name)
}

// Validate returns ErrInvalid if the key breaks a rule.
func (k Key) Validate() error {
	if err := ValidateJob(k.Job); err != nil {
		return err
	}
	if k.Attempt == 0 {
		return invalidf("attempt 0 in key %s: attempts count from 1", k)
	}
	return validateName(k.Name)
}

// ValidateJob returns ErrInvalid unless job is 1 to 64 bytes of [A-Za-z0-9._-] that begin with a
// letter or digit.
func ValidateJob(job string) error {
	if len(job) == 0 || len(job) > MaxJobBytes {
		return invalidf("job id of %d bytes: must be 1 to %d", len(job), MaxJobBytes)
	}
	if !partOK(job) || strings.IndexByte("._-", job[0]) >= 0 {
		return invalidf("job id %q: only letters, digits, '.', '_', '-', and first a letter or digit", job)
	}
	return nil
}

// validateName returns ErrInvalid unless name obeys the rule of Key.Name.
func validateName(name string) error {
	if len(name) == 0 || len(name) > MaxNameBytes {
		return invalidf("value name of %d bytes: must be 1 to %d", len(name), MaxNameBytes)
	}
	for rest, more := name, true; more; {
		var part string
		part, rest, more = strings.Cut(rest, "/")
		if part == "" || part == "." || part == ".." || !partOK(part) {
			return invalidf("value name %q: parts of letters, digits, '.', '_', '-', with '/' between them", name)
		}
	}
	return nil
}

// partBytes marks the bytes that parts of names may have. It is a table because every key of every
// batch is checked several times on its way.
var partBytes = func() (ok [256]bool) {
	for _, c := range []byte("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") {
		ok[c] = true
	}
	return ok
}()

// partOK reports whether s has only bytes of partBytes.
func partOK(s string) bool {
	for i := range len(s) {
		if !partBytes[s[i]] {
			return false
		}
	}
	return true
}

// Compare orders keys field by field, which is the order of encoded keys.
func (k Key) Compare(o Key) int {
	return cmp.Or(
		cmp.Compare(k.Job, o.Job),
		cmp.Compare(k.Step, o.Step),
		cmp.Compare(k.Task, o.Task),
		cmp.Compare(k.Attempt, o.Attempt),
		cmp.Compare(k.Name, o.Name),
	)
}

// AppendKey appends the key's encoding: job, NUL, step, task, attempt (big endian, 4 bytes each),
// name. Keys of one job share a prefix, and so do those of a step.
func AppendKey(dst []byte, k Key) []byte {
	dst = AppendStepPrefix(dst, k.Job, k.Step)
	dst = binary.BigEndian.AppendUint32(dst, k.Task)
	dst = binary.BigEndian.AppendUint32(dst, k.Attempt)
	return append(dst, k.Name...)
}

// AppendJobPrefix appends the prefix that the encodings of all keys of a job share.
func AppendJobPrefix(dst []byte, job string) []byte {
	dst = append(dst, job...)
	return append(dst, 0)
}

// AppendStepPrefix appends the prefix that the encodings of all keys of a step share.
func AppendStepPrefix(dst []byte, job string, step uint32) []byte {
	return binary.BigEndian.AppendUint32(AppendJobPrefix(dst, job), step)
}

// ParseKey decodes and validates an encoded key. It returns ErrInvalid if it is not one.
func ParseKey(b []byte) (Key, error) {
	end := bytes.IndexByte(b, 0)
	if end < 0 || len(b) > MaxKeyBytes || len(b) < end+1+12 {
		return Key{}, invalidf("encoded key of %d bytes is not a key", len(b))
	}
	n := b[end+1:]
	k := Key{
		Job:     string(b[:end]),
		Step:    binary.BigEndian.Uint32(n),
		Task:    binary.BigEndian.Uint32(n[4:]),
		Attempt: binary.BigEndian.Uint32(n[8:]),
		Name:    string(n[12:]),
	}
	return k, k.Validate()
}
