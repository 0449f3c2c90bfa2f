package hdfs

import (
	"net/http"
	"os"
	"os/user"
	"strings"

	krb "github.com/jcmturner/gokrb5/v8/client"
	"github.com/jcmturner/gokrb5/v8/config"
	"github.com/jcmturner/gokrb5/v8/credentials"
	"github.com/jcmturner/gokrb5/v8/keytab"
	"github.com/jcmturner/gokrb5/v8/spnego"
)

// kerberos returns a client with credentials: from the keytab in KRB5_CLIENT_KTNAME, else from the
// ticket cache (KRB5CCNAME, or kinit's default).
func kerberos() (*krb.Client, error) {
	file := os.Getenv(envKrbConf)
	if file == "" {
		file = "/etc/krb5.conf"
	}
	conf, err := config.Load(file)
	if err != nil {
		return nil, inputf("kerberos: %s: %v: set %s to the realm's krb5.conf", file, err, envKrbConf)
	}
	if table := os.Getenv(envKeytab); table != "" {
		return fromKeytab(strings.TrimPrefix(table, "FILE:"), conf)
	}
	return fromCache(conf)
}

// Negotiate adds a ticket for the request's host, as Hadoop's web services require it (SPNEGO,
// RFC 4559).
func Negotiate(r *http.Request) error {
	c, err := kerberos()
	if err != nil {
		return err
	}
	defer c.Destroy()
	if err := spnego.SetSPNEGOHeader(c, r, "HTTP/"+r.URL.Hostname()); err != nil {
		return inputf("kerberos: no ticket for HTTP/%s: %s", r.URL.Hostname(), firstLine(err))
	}
	return nil
}

// fromKeytab logs in with a keytab, as the given principal or else as the keytab's first.
func fromKeytab(file string, conf *config.Config) (*krb.Client, error) {
	table, err := keytab.Load(file)
	if err != nil {
		return nil, inputf("kerberos: keytab %s: %v", file, err)
	}
	name, realm, _ := strings.Cut(os.Getenv(envPrincipal), "@")
	if name == "" {
		if len(table.Entries) == 0 {
			return nil, inputf("kerberos: keytab %s is empty", file)
		}
		p := table.Entries[0].Principal
		name, realm = strings.Join(p.Components, "/"), p.Realm
	}
	if realm == "" {
		realm = conf.LibDefaults.DefaultRealm
	}
	c := krb.NewWithKeytab(name, realm, table, conf, krb.DisablePAFXFAST(true))
	if err := c.Login(); err != nil {
		return nil, inputf("kerberos: login of %s@%s with keytab %s failed: %s", name, realm, file, firstLine(err))
	}
	return c, nil
}

// fromCache uses the tickets that kinit has obtained.
func fromCache(conf *config.Config) (*krb.Client, error) {
	file := os.Getenv(envCache)
	if kind, rest, ok := strings.Cut(file, ":"); ok {
		if kind != "FILE" {
			return nil, inputf("kerberos: %s=%s: only ticket caches of kind FILE can be read: kinit -c FILE:PATH", envCache,
				file)
		}
		file = rest
	}
	if file == "" {
		u, err := user.Current()
		if err != nil {
			return nil, inputf("kerberos: this process's user is unknown: set %s", envCache)
		}
		file = "/tmp/krb5cc_" + u.Uid
	}
	cache, err := credentials.LoadCCache(file)
	if err != nil {
		return nil, inputf("kerberos: ticket cache %s: %v: run kinit, or set %s to a keytab", file, err, envKeytab)
	}
	c, err := krb.NewFromCCache(cache, conf, krb.DisablePAFXFAST(true))
	if err != nil {
		return nil, inputf("kerberos: ticket cache %s: %s: run kinit", file, firstLine(err))
	}
	return c, nil
}

func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}
