package hdfs

import (
	"encoding/xml"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/user"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/colinmarc/hdfs/v2"
	"github.com/colinmarc/hdfs/v2/hadoopconf"

	"taxon/internal/fs/vfs"
)

// defaultPort is the name node's port if a path has none.
const defaultPort = "8020"

// These are the environment variables that this package reads.
const (
	envConf      = "HADOOP_CONF_DIR"
	envHome      = "HADOOP_HOME"
	envUser      = "HADOOP_USER_NAME"
	envPrincipal = "TAXON_KERBEROS_PRINCIPAL"
	envKeytab    = "KRB5_CLIENT_KTNAME"
	envCache     = "KRB5CCNAME"
	envKrbConf   = "KRB5_CONFIG"
)

// options returns the client options for a location: addresses from the location and the
// configuration, everything else from the configuration and the environment.
func options(l Location) (hdfs.ClientOptions, error) {
	conf, err := hadoopconf.LoadFromEnvironment()
	if err != nil {
		return hdfs.ClientOptions{}, brokenConf(err)
	}
	host := l.Host
	if host == "" {
		if host, err = defaultHost(conf); err != nil {
			return hdfs.ClientOptions{}, err
		}
	}
	addresses, err := nameNodes(conf, host)
	if err != nil {
		return hdfs.ClientOptions{}, err
	}
	rest := hadoopconf.HadoopConf{} // the library panics if the default file system is no URL
	for k := range conf {
		if !strings.Contains(k, "fs.default") {
			rest[k] = Property(conf, k)
		}
	}
	o := hdfs.ClientOptionsFromConf(rest)
	o.Addresses = addresses
	if o.KerberosClient != nil {
		if l.User != "" {
			return o, inputf("user %q in the path: with Kerberos the ticket says who you are, leave the user out", l.User)
		}
		if o.DataTransferProtection == hdfs.DataTransferProtectionIntegrity { // the library loses bytes of such transfers
			return o, inputf("dfs.data.transfer.protection=integrity: such transfers can't be read here: authentication can, " +
				"and privacy with dfs.encrypt.data.transfer.cipher.suites=AES/CTR/NoPadding")
		}
		o.KerberosClient, err = kerberos()
		return o, err
	}
	o.User, err = actAs(l)
	return o, err
}

// brokenConf adds to the library's error about an invalid configuration the name of the file, which
// the library does not report.
func brokenConf(err error) error {
	for _, v := range []struct{ name, below string }{{envConf, ""}, {envHome, "conf"}} {
		dir := os.Getenv(v.name)
		if dir == "" {
			continue
		}
		for _, name := range []string{"core-site.xml", "hdfs-site.xml", "mapred-site.xml"} {
			file := filepath.Join(dir, v.below, name)
			data, err := os.ReadFile(file)
			if err == nil {
				err = xml.Unmarshal(data, new(struct{}))
			}
			if err != nil && !errors.Is(err, os.ErrNotExist) {
				return &vfs.InputError{Msg: fmt.Sprintf("%s, of the folder that %s names, can't be read: %v", file, v.name,
					cause(err)), Err: err}
			}
		}
	}
	return &vfs.InputError{Msg: fmt.Sprintf("%s: %v", envConf, err), Err: err}
}

// cause strips the path from an error of the operating system.
func cause(err error) error {
	var p *os.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// actAs returns the user's name on a cluster without Kerberos: from the path, the environment or
// the login.
func actAs(l Location) (string, error) {
	if l.User != "" {
		return l.User, nil
	}
	if u := os.Getenv(envUser); u != "" {
		return u, nil
	}
	u, err := user.Current()
	if err != nil {
		return "", inputf("this process's user has no name: set %s, or name one in hdfs://user@host:port/path", envUser)
	}
	return u.Username, nil
}

func defaultHost(conf hadoopconf.HadoopConf) (string, error) {
	fs := Property(conf, "fs.defaultFS")
	if fs == "" {
		fs = Property(conf, "fs.default.name")
	}
	if fs == "" {
		return "", inputf("the path names no host, and no configuration names a default: set %s to the folder of "+
			"core-site.xml, or write hdfs://host:port/path", envConf)
	}
	u, err := url.Parse(fs)
	if err != nil || u.Scheme != "hdfs" || u.Host == "" {
		return "", inputf("fs.defaultFS is %q in the folder that %s names: expected hdfs://host:port; write "+
			"the host into the path", fs, envConf)
	}
	return u.Host, nil
}

// nameNodes returns the addresses of a host, or of the name service with that name.
func nameNodes(conf hadoopconf.HadoopConf, host string) ([]string, error) {
	ids := Property(conf, "dfs.ha.namenodes."+host)
	if ids == "" {
		if _, _, err := net.SplitHostPort(host); err != nil {
			host = net.JoinHostPort(strings.Trim(host, "[]"), defaultPort)
		}
		return []string{host}, nil
	}
	var out []string
	for _, id := range strings.Split(ids, ",") {
		key := "dfs.namenode.rpc-address." + host + "." + strings.TrimSpace(id)
		address := Property(conf, key)
		if address == "" {
			return nil, inputf("name service %s: %s is not set in hdfs-site.xml", host, key)
		}
		out = append(out, address)
	}
	return out, nil
}

var variable = regexp.MustCompile(`\$\{[^}$\s]+\}`)

// Property returns a property with ${...} replaced by other properties and environment variables
// (${env.NAME}), as Hadoop does. Unknown names are kept.
func Property(conf map[string]string, key string) string {
	v := strings.TrimSpace(conf[key])
	const depth = 20 // Hadoop's own limit
	for range depth {
		next := variable.ReplaceAllStringFunc(v, func(ref string) string {
			name := ref[2 : len(ref)-1]
			if env, ok := strings.CutPrefix(name, "env."); ok {
				return os.Getenv(env)
			}
			if to, ok := conf[name]; ok {
				return to
			}
			return ref
		})
		if next == v {
			break
		}
		v = next
	}
	return v
}

// errAddress returns the error if no name node answered.
func errAddress(addresses []string, err error) error {
	at := strings.Join(addresses, ", ")
	var op *net.OpError
	cause := err.Error()
	if errors.As(err, &op) && op.Err != nil {
		cause = op.Err.Error()
	}
	cause = strings.TrimPrefix(cause, "no available namenodes: ")
	return &vfs.InputError{Msg: "no HDFS name node answers at " + at + " (" + cause + "): check host and port " +
		"(fs.defaultFS in core-site.xml) and that it runs", Err: err}
}
