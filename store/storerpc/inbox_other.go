//go:build !unix

package storerpc

import (
	"errors"

	"taxon/internal/fs/vfs"
)

func openPlain(string) (vfs.File, error) { return nil, errors.ErrUnsupported }

// shortCircuits says whether this system has what a short circuit needs.
const shortCircuits = false
