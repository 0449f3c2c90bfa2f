package main

import (
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"taxon/store/storerpc"
)

// plainly words what a process's calls to the coordinator fail on, before warn logs it.
func plainly(warn func(error), coordinator string) func(error) {
	return func(err error) {
		if status.Code(err) == codes.Unavailable {
			err = fmt.Errorf("the coordinator at %s does not answer, it is called again and again: %s", coordinator, storerpc.Plain(err.Error()))
		}
		warn(err)
	}
}

// sizeFrom refuses a size that can't be meant: 4 where 4GiB was.
func sizeFrom(verb, flag string, bytes, least int64) error {
	if bytes == 0 || bytes >= least {
		return nil
	}
	return fmt.Errorf("%s: --%s %d: must be %s or more: a number without a unit is bytes, write 4GiB", verb, flag, bytes, formatBytes(least))
}
