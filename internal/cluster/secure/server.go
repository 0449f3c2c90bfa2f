package secure

import (
	"context"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/reflection"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"

	"taxon/internal/cluster/release"
)

// These are the limits of every connection.
const (
	// MaxMessageBytes bounds a received message. The largest are job specifications with the
	// names of some hundred thousand labels (tens of MB), and their plans.
	MaxMessageBytes = 128 << 20
	// maxStreams bounds the simultaneous calls of a connection. A worker makes a few for each
	// slot.
	maxStreams = 1024
	// maxHeaderBytes bounds a call's metadata: a token and a few names.
	maxHeaderBytes = 16 << 10
	// handshakeTime bounds TLS and HTTP/2 greetings.
	handshakeTime = 10 * time.Second
	// pingEvery detects dead peers. A peer that pings more than twice as often is disconnected.
	pingEvery = 10 * time.Second
	pingWait  = 5 * time.Second
)

// ServerOptions returns the options for this process's grpc.Server: TLS, checks of identities against
// the policy, bounds, keepalive. Files are read here for the first time, so that their errors
// show before the process is ready.
func (o Options) ServerOptions(p Policy) ([]grpc.ServerOption, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	g, err := o.newGuard(p, "")
	if err != nil {
		return nil, err
	}
	opts := []grpc.ServerOption{
		grpc.MaxRecvMsgSize(MaxMessageBytes),
		grpc.MaxConcurrentStreams(maxStreams),
		grpc.MaxHeaderListSize(maxHeaderBytes),
		grpc.ConnectionTimeout(handshakeTime),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: pingEvery / 2, PermitWithoutStream: true}),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: pingEvery, Timeout: pingWait}),
		// This runs before a message is read, and also for methods that do not exist.
		grpc.InTapHandle(g.admit),
		grpc.ChainUnaryInterceptor(g.watchUnary, checkInputs),
		grpc.ChainStreamInterceptor(g.watchStream),
	}
	if o.serverTLS() {
		files, err := o.watchPair()
		if err != nil {
			return nil, err
		}
		opts = append(opts, grpc.Creds(credentials.NewTLS(serverConfig(files, nil))))
	}
	return opts, nil
}

// guard decides whether a call is allowed.
type guard struct {
	policy Policy
	// identified says that callers need an identity.
	identified bool
	// mutual says that a certificate is an identity.
	mutual       bool
	requireToken bool
	// tokens is nil if tokens are not accepted.
	tokens *watched[[]tokenEntry]
	// refused is Options.Refused.
	refused func(Refusal)
}

// newGuard returns the guard of a policy. own is the role of tokens without a role.
func (o Options) newGuard(p Policy, own Role) (*guard, error) {
	g := &guard{policy: p.clone(), identified: o.identified(), mutual: o.mutual(), requireToken: o.RequireToken,
		refused: o.Refused}
	if o.TokenFile != "" {
		var err error
		g.tokens, err = watch([]string{o.TokenFile}, o.warn, func() ([]tokenEntry, error) {
			return serverTokens(o.TokenFile,
				own)
		})
		if err != nil {
			return nil, err
		}
	}
	return g, nil
}

// admit checks a call by its header. It runs in the connection's reader, so it must be quick.
func (g *guard) admit(ctx context.Context, info *tap.Info) (context.Context, error) {
	if err := sameProtocol(info); err != nil {
		g.noteCall(ctx, err, info.FullMethodName)
		return ctx, err
	}
	if !g.identified {
		return ctx, nil
	}
	allowed := g.policy[info.FullMethodName]
	if open(allowed) {
		return ctx, nil
	}
	id, err := g.identify(ctx, info.Header)
	if err == nil && !id.May(allowed) {
		err = roleError(info.FullMethodName, id, allowed)
	}
	ctx = id.with(ctx)
	g.noteCall(ctx, err, info.FullMethodName)
	return ctx, err
}

// sameProtocol refuses a process or client whose release uses another protocol.
func sameProtocol(info *tap.Info) error {
	words := info.Header.Get(release.Key)
	if len(words) == 0 || strings.HasPrefix(info.FullMethodName, "/taxon.v1.Models/") ||
		!strings.HasPrefix(info.FullMethodName, "/taxon.") {
		return nil
	}
	if err := release.Check(words[0]); err != nil {
		return status.Error(codes.PermissionDenied, err.Error())
	}
	return nil
}

// open reports whether a caller without an identity may call a method.
func open(allowed []Role) bool { return len(allowed) == 1 && allowed[0] == Anyone }

// identify returns a call's identity, which its token states or, without a token, its certificate.
func (g *guard) identify(ctx context.Context, header metadata.MD) (Identity, error) {
	var tls credentials.TLSInfo
	if p, ok := peer.FromContext(ctx); ok {
		tls, _ = p.AuthInfo.(credentials.TLSInfo)
	}
	var values []string
	if header != nil {
		values = header.Get("authorization")
	}
	return g.known(values, tls)
}

// roleError says which roles a call needs.
func roleError(what string, id Identity, allowed []Role) error {
	if !slices.Contains(allowed, Admin) {
		allowed = append(slices.Clone(allowed), Admin)
	}
	return status.Errorf(codes.PermissionDenied, "%s needs role %s, and %s has role %s: give a certificate or "+
		"token of a role that may",
		what, strings.Join(RoleNames(allowed), " or "), id.Name, strings.Join(RoleNames(id.Roles), ", "))
}

// known returns the identity of a call by its headers and its TLS state.
func (g *guard) known(authorization []string, tls credentials.TLSInfo) (Identity, error) {
	unknown := func(why string) (Identity, error) { return Identity{}, status.Error(codes.Unauthenticated, why) }
	if len(authorization) > 1 {
		return unknown("more than one authorization")
	}
	if len(authorization) == 1 && g.tokens != nil {
		scheme, token, _ := strings.Cut(authorization[0], " ")
		if roles := lookUp(g.tokens.get(), token); strings.EqualFold(scheme, "bearer") && len(roles) > 0 {
			return Identity{Name: "the token", Roles: roles, Caller: tokenCaller(token)}, nil
		}
		return unknown("the token is not known here: give a ROLE.token of this cluster, or its newest ROLE.tokens to the " +
			"server (`taxon certs token`)")
	}
	if chains := tls.State.VerifiedChains; len(chains) > 0 && !g.requireToken {
		cert := chains[0][0]
		roles := certificateRoles(cert)
		if len(roles) == 0 {
			return Identity{}, status.Errorf(codes.PermissionDenied, "the certificate %s has no role: make it with "+
				"`taxon certs ‹role›`", cert.Subject.CommonName)
		}
		return Identity{Name: "the certificate " + cert.Subject.CommonName, Roles: roles, Caller: cert.Subject.CommonName},
			nil
	}
	switch {
	case g.tokens != nil && g.mutual && !g.requireToken:
		return unknown("a token or a certificate is needed: give ‹token-file›, or ‹tls-cert› and ‹tls-key›")
	case g.tokens != nil:
		return unknown("a token is needed: give ‹token-file›")
	case len(authorization) == 1:
		return unknown("no tokens are taken here: give ‹tls-cert› and ‹tls-key›")
	}
	return unknown("a certificate is needed: give ‹tls-cert› and ‹tls-key›")
}

// RoleNames returns the names of roles.
func RoleNames(roles []Role) []string {
	names := make([]string, len(roles))
	for i, r := range roles {
		names[i] = string(r)
	}
	return names
}

// Register adds reflection and the health service, in which the named services and the whole server
// are serving. Set and Shutdown of the result change the health. It must be called after the
// process's own services are registered.
func Register(s *grpc.Server, services ...string) *health.Server {
	h := health.NewServer()
	for _, name := range services {
		h.SetServingStatus(name, healthpb.HealthCheckResponse_SERVING)
	}
	healthpb.RegisterHealthServer(s, h)
	reflection.Register(s)
	return h
}
