package secure

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"taxon/internal/fs/vfs"
)

const (
	// caCertFile and caKeyFile are the files of an authority. A certificate is NAME.crt with
	// NAME.key.
	caCertFile = "ca.crt"
	caKeyFile  = "ca.key"
)

const (
	caYears = 10
	// skew makes new certificates valid for clocks that are behind.
	skew = time.Hour
	day  = 24 * time.Hour
)

// Authority signs certificates for the processes of a cluster. All keys are ECDSA P-256.
type Authority struct {
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	// Made says that this call of OpenAuthority made the authority.
	Made bool
}

// CertFile returns the path of the authority's certificate, which all processes need.
func (a *Authority) CertFile() string { return filepath.Join(a.dir, caCertFile) }

// Expires returns when the authority's certificate expires. No certificate that it signs expires
// later.
func (a *Authority) Expires() time.Time { return a.cert.NotAfter }

// OpenAuthority opens the authority in a folder. If there is none, it makes the folder and the
// authority.
func OpenAuthority(dir string, now time.Time) (*Authority, error) {
	if err := vfs.MkdirAll(vfs.OS, dir, 0o700); err != nil {
		return nil, err
	}
	certPath, keyPath := filepath.Join(dir, caCertFile), filepath.Join(dir, caKeyFile)
	_, certErr := vfs.OS.Stat(certPath)
	_, keyErr := vfs.OS.Stat(keyPath)
	if errors.Is(certErr, fs.ErrNotExist) && errors.Is(keyErr, fs.ErrNotExist) {
		return makeAuthority(dir, now)
	}
	if errors.Is(keyErr, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: no key beside %s: bring it back, or remove %s to begin anew", keyPath, caCertFile,
			caCertFile)
	}
	cert, err := readCertificate(certPath)
	if err != nil {
		return nil, err
	}
	key, err := readKey(keyPath)
	if err != nil {
		return nil, err
	}
	switch {
	case !key.PublicKey.Equal(cert.PublicKey):
		return nil, fmt.Errorf("%s is not the key of %s", keyPath, certPath)
	case !cert.IsCA:
		return nil, fmt.Errorf("%s is no authority's certificate", certPath)
	case now.After(cert.NotAfter):
		return nil, fmt.Errorf("%s expired on %s: move it and its key away to begin anew", certPath,
			cert.NotAfter.Format(time.DateOnly))
	}
	return &Authority{dir: dir, cert: cert, key: key}, nil
}

// makeAuthority makes an authority.
func makeAuthority(dir string, now time.Time) (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	serial, err := newSerial()
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		// A part of the serial number, so that two authorities of this name can be told apart.
		Subject:               pkix.Name{CommonName: fmt.Sprintf("taxon CA %x", serial.Bytes()[:4])},
		NotBefore:             now.Add(-skew),
		NotAfter:              now.AddDate(caYears, 0, 0),
		IsCA:                  true,
		BasicConstraintsValid: true,
		MaxPathLenZero:        true, // it signs no other authorities
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	if err := writePair(filepath.Join(dir, "ca"), der, key); err != nil {
		return nil, err
	}
	return &Authority{dir: dir, cert: cert, key: key, Made: true}, nil
}

// newSerial returns 127 random bits whose first byte is not 0.
func newSerial() (*big.Int, error) {
	b := make([]byte, 16)
	if _, err := rand.Read(b); err != nil {
		return nil, err
	}
	b[0] = b[0]&0x7f | 0x40
	return new(big.Int).SetBytes(b), nil
}

// Request describes a certificate.
type Request struct {
	// Name is the name of the files. If it is empty, it is derived from hosts and roles.
	Name string
	// Hosts are the names and IP addresses by which the process is called. A process that only
	// calls others has none.
	Hosts []string
	// Roles are one or more roles.
	Roles []Role
	// Valid is how long the certificate is valid, at most as long as the authority.
	Valid time.Duration
	// Renew makes the certificate again even if the old one is still good.
	Renew bool
}

// Requests returns a Request for each host, given as NAME,IP..., or one for a process that only
// calls if there are no hosts. A host without roles gets those of a cluster's processes.
func Requests(hosts []string, base Request) []Request {
	if len(hosts) == 0 {
		return []Request{base}
	}
	var out []Request
	for _, host := range hosts {
		r := base
		for h := range strings.SplitSeq(host, ",") {
			r.Hosts = append(r.Hosts, strings.TrimSpace(h))
		}
		if len(r.Roles) == 0 {
			r.Roles = []Role{Coordinator, Store, Worker}
		} else if r.Name == "" {
			// A host may have a certificate for each role; they must not replace each other.
			r.Name = r.FileName() + "-" + strings.Join(RoleNames(r.Roles), "-")
		}
		out = append(out, r)
	}
	return out
}

// Issued is a certificate in the authority's folder.
type Issued struct {
	// Cert and Key are the paths of the files.
	Cert, Key string
	Expires   time.Time
	// Made is false if an existing certificate was kept.
	Made bool
}

// Issue makes the certificate, or keeps an existing one of that name if it has the same content and
// at least a third of its time left.
func (a *Authority) Issue(r Request, now time.Time) (Issued, error) {
	if err := r.check(); err != nil {
		return Issued{}, err
	}
	base := filepath.Join(a.dir, r.FileName())
	out := Issued{Cert: base + ".crt", Key: base + ".key"}
	if expires, ok := a.serves(out, r, now); ok && !r.Renew {
		out.Expires = expires
		return out, nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Issued{}, err
	}
	template, err := a.template(r, now)
	if err != nil {
		return Issued{}, err
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		return Issued{}, err
	}
	if err := writePair(base, der, key); err != nil {
		return Issued{}, err
	}
	out.Expires, out.Made = template.NotAfter, true
	return out, nil
}

// template returns the content of the certificate.
func (a *Authority) template(r Request, now time.Time) (*x509.Certificate, error) {
	serial, err := newSerial()
	if err != nil {
		return nil, err
	}
	t := &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{CommonName: r.FileName()},
		NotBefore:             now.Add(-skew),
		NotAfter:              now.Add(r.Valid),
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	if t.NotAfter.After(a.cert.NotAfter) {
		t.NotAfter = a.cert.NotAfter
	}
	for _, h := range r.Hosts {
		if ip := net.ParseIP(h); ip != nil {
			t.IPAddresses = append(t.IPAddresses, ip)
		} else {
			t.DNSNames = append(t.DNSNames, h)
		}
	}
	if len(r.Hosts) > 0 {
		t.ExtKeyUsage = append(t.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	}
	for _, role := range r.Roles {
		t.URIs = append(t.URIs, &url.URL{Scheme: "urn", Opaque: strings.TrimPrefix(roleURN, "urn:") + string(role)})
	}
	return t, nil
}

// serves reports whether the existing certificate is good for the request, and returns when it
// expires.
func (a *Authority) serves(have Issued, r Request, now time.Time) (time.Time, bool) {
	cert, err := readCertificate(have.Cert)
	if err != nil {
		return time.Time{}, false
	}
	key, err := readKey(have.Key)
	if err != nil || !key.PublicKey.Equal(cert.PublicKey) || cert.CheckSignatureFrom(a.cert) != nil {
		return time.Time{}, false
	}
	var hosts []string
	hosts = append(hosts, cert.DNSNames...)
	for _, ip := range cert.IPAddresses {
		hosts = append(hosts, ip.String())
	}
	left, whole := cert.NotAfter.Sub(now), cert.NotAfter.Sub(cert.NotBefore)
	return cert.NotAfter, sameSet(hosts, canonical(r.Hosts)) && sameSet(certificateRoles(cert), r.Roles) && left >= whole/3
}

// canonical formats addresses as certificates do.
func canonical(hosts []string) []string {
	out := slices.Clone(hosts)
	for i, h := range out {
		if ip := net.ParseIP(h); ip != nil {
			out[i] = ip.String()
		}
	}
	return out
}

// sameSet reports whether two lists have the same elements.
func sameSet[T ~string](a, b []T) bool {
	a, b = slices.Clone(a), slices.Clone(b)
	slices.Sort(a)
	slices.Sort(b)
	return slices.Equal(slices.Compact(a), slices.Compact(b))
}

// FileName returns the name of the files without folder and suffix: Name, or the first host, or the
// roles.
func (r Request) FileName() string {
	if r.Name != "" {
		return r.Name
	}
	if len(r.Hosts) > 0 {
		return strings.ReplaceAll(strings.ReplaceAll(r.Hosts[0], "*", "any"), ":", "_")
	}
	return strings.Join(RoleNames(r.Roles), "-")
}

// check validates the request.
func (r Request) check() error {
	if len(r.Roles) == 0 {
		return errors.New("a certificate needs a role")
	}
	if r.Valid < day {
		return errors.New("a certificate is valid for a day or more")
	}
	for _, h := range r.Hosts {
		if err := checkHostName(h); err != nil {
			return err
		}
	}
	if n := r.FileName(); n == "ca" || !fileNameOK(n) {
		return fmt.Errorf("name %q: letters, digits, '.', '_' and '-', and not ca", n)
	}
	return nil
}

// fileNameOK reports whether a file of this name stays within its folder.
func fileNameOK(name string) bool {
	return name != "" && len(name) <= 128 && name[0] != '.' && name[0] != '-' &&
		!strings.ContainsFunc(name, func(c rune) bool { return !nameRune(c) })
}

func nameRune(c rune) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("._-", c)
}

// checkHostName accepts an IP address or a DNS name, which may begin with "*.".
func checkHostName(h string) error {
	if net.ParseIP(h) != nil {
		return nil
	}
	for label := range strings.SplitSeq(strings.TrimPrefix(h, "*."), ".") {
		ok := label != "" && len(label) <= 63 && label[0] != '-' && label[len(label)-1] != '-' &&
			!strings.ContainsFunc(label, func(c rune) bool { return !nameRune(c) || c == '.' })
		if !ok || len(h) > 253 {
			return fmt.Errorf("host %q: neither a DNS name nor an IP address", h)
		}
	}
	return nil
}

func readCertificate(path string) (*x509.Certificate, error) {
	data, err := readFile(path, false)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(data)
	if block == nil || block.Type != "CERTIFICATE" {
		return nil, fmt.Errorf("%s: no PEM certificate in it", path)
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return cert, nil
}

func readKey(path string) (*ecdsa.PrivateKey, error) {
	data, err := readFile(path, true)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(data)
	if block == nil {
		return nil, fmt.Errorf("%s: no PEM key in it", path)
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%s: not a key that this program made", path) // the parser's message could quote the key
	}
	ec, ok := key.(*ecdsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("%s: not an ECDSA key", path)
	}
	return ec, nil
}

// writePair writes base.key, then base.crt. A process that reads them in between finds that they
// do not match, and keeps its old ones.
func writePair(base string, der []byte, key *ecdsa.PrivateKey) error {
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	if err := writeFile(base+".key", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}),
		0o600); err != nil {
		return err
	}
	return writeFile(base+".crt", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o644)
}

// writeFile replaces a file as a whole. It never exists with looser permissions.
func writeFile(path string, data []byte, mode os.FileMode) error {
	if err := vfs.WriteFile(vfs.OS, path, data, mode); err != nil {
		return err
	}
	return os.Chmod(path, mode) // the user's mask does not count
}
