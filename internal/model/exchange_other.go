//go:build !linux

package model

import "errors"

func exchange(_, _ string) error { return errors.ErrUnsupported }
