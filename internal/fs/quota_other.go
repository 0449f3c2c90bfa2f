//go:build !unix

package fs

import "errors"

// errQuota has no counterpart on this system; nothing equals it.
var errQuota = errors.New("disk quota exceeded")
