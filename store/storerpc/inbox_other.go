//go:build !unix

package storerpc

import (
	"errors"
	"os"
)

func openInbox(string) (*os.File, error) { return nil, errors.ErrUnsupported }

// shortCircuits says whether this system has what a short circuit needs.
const shortCircuits = false
