package secure

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	taxonv1 "taxon/proto/taxon/v1"
)

// These bound the names in requests. They are wider than what is in use, and narrow enough to keep,
// log and show a hundred thousand of them.
const (
	maxIDBytes    = 64
	maxNameBytes  = 256
	maxSlots      = 1 << 16
	maxReplicas   = 64
	maxLeases     = 1 << 16
	maxReports    = 1 << 10
	maxErrorBytes = 1 << 20
)

// checkInputs refuses requests whose names could not be shown, dialled or kept, before a service
// sees them. The service itself judges what a request means.
func checkInputs(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	if err := CheckRequest(req); err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	return handle(ctx, req)
}

// CheckRequest checks the names, ids, addresses and counts of a request. It accepts every request
// of a kind that it does not know.
func CheckRequest(req any) error {
	switch r := req.(type) {
	case *taxonv1.SubmitRequest:
		return first(checkID("job", r.GetJob()), checkName("job name", r.GetName()), atMost("replicas", int(r.GetReplicas()),
			maxReplicas))
	case *taxonv1.RegisterRequest:
		return first(checkName("worker name", r.GetName()), checkVersion(r.GetVersion()), atMost("slots", int(r.GetSlots()),
			maxSlots))
	case *taxonv1.DrainRequest:
		return checkName("worker", r.GetWorker())
	case *taxonv1.LeaveRequest:
		return checkID("worker", r.GetWorker())
	case *taxonv1.LeaseRequest:
		return checkID("worker", r.GetWorker())
	case *taxonv1.RenewRequest:
		return first(checkID("worker", r.GetWorker()), atMost("leases", len(r.GetLeases()), maxLeases))
	case *taxonv1.ReportRequest:
		if err := first(checkReport(r), atMost("reports", len(r.GetMore()), maxReports)); err != nil {
			return err
		}
		for _, m := range r.GetMore() {
			if err := checkReport(m); err != nil {
				return err
			}
		}
		return nil
	case *taxonv1.JoinStoreRequest:
		return first(checkID("shard", r.GetId()), checkAddr(r.GetAddr()), checkVersion(r.GetVersion()))
	case *taxonv1.LeaveStoreRequest:
		return checkID("shard", r.GetId())
	case interface{ GetJob() string }: // Status, Cancel, Resume, Describe
		return checkName("job", r.GetJob())
	}
	return nil
}

// checkReport checks the report of one task.
func checkReport(r *taxonv1.ReportRequest) error {
	return first(checkID("worker", r.GetWorker()), checkID("job", r.GetLease().GetJob()),
		atMost("bytes of error", len(r.GetError()), maxErrorBytes), atMost("lost values", len(r.GetLost()), maxLeases))
}

func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func atMost(what string, n, most int) error {
	if n < 0 || n > most {
		return fmt.Errorf("%d %s: at most %d", n, what, most)
	}
	return nil
}

// checkID accepts an id, or nothing if the other side makes one or refuses.
func checkID(what, id string) error {
	if len(id) > maxIDBytes {
		return fmt.Errorf("%s id of %d bytes: at most %d", what, len(id), maxIDBytes)
	}
	if id != "" && (strings.ContainsFunc(id, func(c rune) bool { return !nameRune(c) }) || strings.IndexByte("._-",
		id[0]) >= 0) {
		return fmt.Errorf("%s id %q: only letters, digits, '.', '_', '-', and first a letter or digit", what, id)
	}
	return nil
}

// checkName accepts text that a terminal can show as it is, as it will be shown to others.
func checkName(what, name string) error {
	if len(name) > maxNameBytes {
		return fmt.Errorf("%s of %d bytes: at most %d", what, len(name), maxNameBytes)
	}
	if !utf8.ValidString(name) || strings.ContainsFunc(name, func(c rune) bool { return !unicode.IsPrint(c) }) {
		return fmt.Errorf("%s %q: only printable characters", what, name)
	}
	return nil
}

// checkVersion accepts what a build calls itself: "v1.2.3", "(devel)" and the like.
func checkVersion(version string) error {
	if len(version) > maxIDBytes || strings.ContainsFunc(version, func(c rune) bool { return c <= ' ' || c > '~' }) {
		return fmt.Errorf("version %.*q: at most %d printable ASCII characters, no blanks", maxIDBytes, version, maxIDBytes)
	}
	return nil
}

// checkAddr accepts HOST:PORT that others can dial, but no resolver scheme, path or socket.
func checkAddr(addr string) error {
	host, port, err := net.SplitHostPort(addr)
	if err != nil || len(addr) > maxNameBytes {
		return fmt.Errorf("address %.*q: must be HOST:PORT", maxNameBytes, addr)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return fmt.Errorf("address %q: the port must be from 1 to 65535", addr)
	}
	if strings.HasPrefix(host, "*") {
		return fmt.Errorf("address %q: must name one host", addr)
	}
	if ip := net.ParseIP(host); ip != nil {
		if ip.IsUnspecified() || ip.IsMulticast() {
			return fmt.Errorf("address %q: nobody can be reached there: give ‹advertise=HOST:PORT›", addr)
		}
		return nil
	}
	return checkHostName(host)
}
