// Package secure says who may talk to taxon's processes, and how: TLS 1.3 with
// certificates of one private authority, tokens from files, a role for every caller and
// a policy that names the roles of each gRPC method.
//
// The rules, which a process gets by building its listener, server and connections with
// an Options:
//
//   - An address beyond loopback is listened on only with both sides proven (mutual TLS,
//     or TLS and tokens), or with the explicit Insecure.
//   - Once certificates or tokens are configured, a call without an identity is refused
//     before its message is read; only the health service answers everyone. A method that
//     the policy does not name is refused to everyone but admin.
//   - A client sends nothing in the clear beyond loopback, unless Insecure.
//   - Keys and tokens live in files that others can't read; they appear in no flag, log or
//     error. The files are read again when they change.
//
// A role is a URI in a certificate (urn:taxon:role:worker) or the first word of a line of
// the server's token file. docs/security.md is the operator's view of the same.
package secure
