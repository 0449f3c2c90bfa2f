// Package secure decides who may talk to taxon's processes, and how: TLS 1.3 with certificates of
// one private authority, tokens from files, roles for callers, and a policy that lists the roles
// for each gRPC method.
//
// A process gets these rules by building its listener, server and connections with Options:
//
//   - Listening beyond loopback requires that both sides prove who they are (mutual TLS, or TLS
//     and tokens), or the explicit Insecure.
//   - Once certificates or tokens are configured, a call without an identity is refused before
//     its message is read. Only the health service answers everyone. A method that the policy
//     does not name is refused to everyone but admin.
//   - A client sends nothing unencrypted beyond loopback, unless Insecure.
//   - Keys and tokens are in files that others can't read. They appear in no flag, log or error.
//     The files are read again when they change.
//
// A role is a URI in a certificate (urn:taxon:role:worker) or the first word of a line of the
// server's token file. docs/security.md describes the same for operators.
package secure
