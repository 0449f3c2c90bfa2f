package hadoop

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
)

// These are the Kerberos principals of a cluster with a KDC of its own (Hadoop's MiniKdc). The name
// node and the data nodes use the first, which has all permissions.
const (
	realm        = "EXAMPLE.COM"
	HDFSUser     = "hdfs/localhost@" + realm
	webPrincipal = "HTTP/localhost@" + realm
	KerberosUser = "alice@" + realm
	kdc          = "kdc"
)

// Keytab returns the path of the keys of all principals.
func (c *Cluster) Keytab() string { return filepath.Join(c.dir, "kdc", "keytab") }

// KerberosConf returns the path of the realm's krb5.conf.
func (c *Cluster) KerberosConf() string { return filepath.Join(c.dir, "kdc", "krb5.conf") }

// startKDC starts the KDC and waits until the keys exist.
func (c *Cluster) startKDC(ctx context.Context) error {
	if c.options.Protection == "" {
		return nil
	}
	if c.options.yarn() {
		return errNoKerberos
	}
	dir := filepath.Dir(c.Keytab())
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	properties := filepath.Join(dir, "properties")
	if err := os.WriteFile(properties, []byte("transport=TCP\nkdc.bind.address=localhost\n"), 0o666); err != nil {
		return err
	}
	if err := c.StartDaemon(kdc); err != nil {
		return err
	}
	return c.until(ctx, "the KDC", func() bool {
		log, err := os.ReadFile(filepath.Join(c.dir, "logs", kdc+".log"))
		return err == nil && strings.Contains(string(log), "CTRL-C")
	})
}

// kdcJava returns the arguments that run the KDC.
func (c *Cluster) kdcJava() []string {
	dir := filepath.Dir(c.Keytab())
	short := func(principal string) string { return strings.TrimSuffix(principal, "@"+realm) }
	return c.java(kdc, "org.apache.hadoop.minikdc.MiniKdc", dir, filepath.Join(dir, "properties"), c.Keytab(),
		short(HDFSUser), short(webPrincipal), short(KerberosUser))
}

// secure adds the properties of a cluster with Kerberos.
func (c *Cluster) secure(core, hdfs map[string]string) {
	protection := c.options.Protection
	if protection == "" {
		return
	}
	core["hadoop.security.authentication"] = "kerberos"
	core["hadoop.rpc.protection"] = protection
	for name, value := range map[string]string{
		"dfs.block.access.token.enable": "true", "dfs.data.transfer.protection": protection,
		"dfs.encrypt.data.transfer.cipher.suites": "AES/CTR/NoPadding",
		"dfs.namenode.kerberos.principal":         HDFSUser, "dfs.namenode.keytab.file": c.Keytab(),
		"dfs.datanode.kerberos.principal": HDFSUser, "dfs.datanode.keytab.file": c.Keytab(),
		"dfs.web.authentication.kerberos.principal": webPrincipal, "dfs.web.authentication.kerberos.keytab": c.Keytab(),
		"ignore.secure.ports.for.testing": "true", // for data nodes of users without privileges
	} {
		hdfs[name] = value
	}
}

// errNoKerberos is the error for YARN with Kerberos.
var errNoKerberos = errors.New("YARN with Kerberos needs hosts and users of its own: only HDFS can be had so")
