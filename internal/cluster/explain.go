package cluster

import (
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"taxon/internal/secure"
	"taxon/store/storerpc"
)

// Explain words for a user what a call to the coordinator at an address failed with, where
// that is the way there: it does not answer, or one side denies the other access. Other
// errors stay as they are.
func Explain(addr string, err error) error {
	var s interface{ GRPCStatus() *status.Status }
	switch {
	case !errors.As(err, &s):
		return err
	case secure.Denied(err):
		return fmt.Errorf("no access to the coordinator at %s: %s", addr, s.GRPCStatus().Message())
	case s.GRPCStatus().Code() == codes.Unavailable, s.GRPCStatus().Code() == codes.DeadlineExceeded:
		return fmt.Errorf("the coordinator at %s does not answer: %s", addr, storerpc.Plain(s.GRPCStatus().Message()))
	}
	return err
}
