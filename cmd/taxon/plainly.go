package main

import (
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"taxon/internal/cluster"
	"taxon/internal/secure"
)

// plainly words what a process's calls to the coordinator fail on, before warn logs it.
func plainly(warn func(error), coordinator string) func(error) {
	return func(err error) {
		if plain := cluster.Explain(coordinator, err); plain != err {
			err = fmt.Errorf("%w: it is called again and again", plain)
		}
		warn(err)
	}
}

// denied ends a process that the coordinator and it do not accept each other, or whose
// place another one has.
func denied(role, coordinator string, err error) error {
	if secure.Denied(err) {
		return usagef("%s: %w", role, cluster.Explain(coordinator, err))
	}
	if status.Code(err) == codes.AlreadyExists {
		return usagef("%s: %s", role, status.Convert(err).Message())
	}
	return err
}

// sizeFrom refuses a size that can't be meant: 4 where 4GiB was.
func sizeFrom(verb, flag string, bytes, least int64) error {
	if bytes == 0 || bytes >= least {
		return nil
	}
	return fmt.Errorf("%s: --%s %d: must be %s or more: a number without a unit is bytes, write 4GiB", verb, flag, bytes, formatBytes(least))
}
