//go:build !unix

package storerpc

import (
	"errors"
	"os"
)

func openPlain(string) (*os.File, error) { return nil, errors.ErrUnsupported }

// shortCircuits says whether this system has what a short circuit needs.
const shortCircuits = false
