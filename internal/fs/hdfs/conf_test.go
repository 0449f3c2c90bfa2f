package hdfs

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jcmturner/gokrb5/v8/keytab"

	"taxon/internal/fs/vfs"
)

// site writes a configuration and sets HADOOP_CONF_DIR to its folder.
func site(t *testing.T, properties ...string) {
	t.Helper()
	var b strings.Builder
	b.WriteString("<configuration>")
	for i := 0; i < len(properties); i += 2 {
		fmt.Fprintf(&b, "<property><name>%s</name><value>%s</value></property>", properties[i], properties[i+1])
	}
	b.WriteString("</configuration>")
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "core-site.xml"), []byte(b.String()), 0o666); err != nil {
		t.Fatal(err)
	}
	t.Setenv(envConf, dir)
	t.Setenv("HADOOP_HOME", "")
}

func mustParse(t *testing.T, path string) Location {
	t.Helper()
	l, err := Parse(path)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestNameNodes(t *testing.T) {
	t.Setenv("HERE", "prod")
	t.Setenv(envUser, "bob")
	site(t, "fs.defaultFS", "hdfs://${env.HERE}", "dfs.ha.namenodes.prod", "a,b ", "domain", "example.org",
		"dfs.namenode.rpc-address.prod.a", "a.${domain}:8020", "dfs.namenode.rpc-address.prod.b", " b.${domain}:8020 ",
		"dfs.namenode.rpc-address.other.c", "c:8020", "dfs.client.use.datanode.hostname", "true")
	for _, c := range []struct {
		path, user string
		want       []string
	}{
		{"hdfs:///x", "bob", []string{"a.example.org:8020", "b.example.org:8020"}},
		{"hdfs://eve@prod/x", "eve", []string{"a.example.org:8020", "b.example.org:8020"}},
		{"hdfs://nn/x", "bob", []string{"nn:8020"}},
		{"hdfs://nn:9000/x", "bob", []string{"nn:9000"}},
	} {
		o, err := options(mustParse(t, c.path))
		if err != nil || o.User != c.user || !slices.Equal(o.Addresses, c.want) || !o.UseDatanodeHostname {
			t.Errorf("%s: %+v, %v", c.path, o, err)
		}
	}
}

func TestBadConfiguration(t *testing.T) {
	for _, c := range []struct {
		properties []string
		want       string
	}{
		{nil, "names no host"},
		{[]string{"fs.defaultFS", "file:///"}, "expected hdfs://host:port"},
		{[]string{"fs.defaultFS", "hdfs://%zz"}, "expected hdfs://host:port"},
		{[]string{"fs.defaultFS", "hdfs://p", "dfs.ha.namenodes.p", "a"}, "dfs.namenode.rpc-address.p.a is not set"},
		{[]string{"fs.defaultFS", "${x}", "x", "${fs.defaultFS}"}, "expected hdfs://host:port"},
	} {
		site(t, c.properties...)
		_, err := options(mustParse(t, "hdfs:///x"))
		var u *vfs.InputError
		if !errors.As(err, &u) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %q", c.properties, err, c.want)
		}
	}
	for _, name := range []string{"core-site.xml", "hdfs-site.xml", "mapred-site.xml"} {
		site(t)
		dir := os.Getenv(envConf)
		for _, at := range []string{dir, filepath.Join(dir, "conf")} {
			broken := filepath.Join(at, name)
			if err := errors.Join(os.MkdirAll(at, 0o777), os.WriteFile(broken, []byte("<configuration>\n<prop"),
				0o666)); err != nil {
				t.Fatal(err)
			}
			_, err := options(mustParse(t, "hdfs://nn/x"))
			var u *vfs.InputError
			if !errors.As(err, &u) || !strings.HasPrefix(err.Error(), broken+", ") || !strings.Contains(err.Error(), "line 2") ||
				strings.Contains(err.Error(), "\n") {
				t.Errorf("%s: %v", broken, err)
			}
			t.Setenv(envConf, "")
			t.Setenv(envHome, dir)
		}
	}
}

const krb5 = "[libdefaults]\n default_realm = EXAMPLE.ORG\n dns_lookup_kdc = false\n udp_preference_limit = " +
	"1\n[realms]\n EXAMPLE.ORG = {\n  kdc = 127.0.0.1:1\n }\n"

// TestKerberos checks as much as possible without a KDC: which credentials are requested, and the
// errors if they are missing.
func TestKerberos(t *testing.T) {
	site(t, "hadoop.security.authentication", "kerberos", "dfs.namenode.kerberos.principal", "nn/_HOST@EXAMPLE.ORG",
		"dfs.data.transfer.protection", "privacy")
	dir := t.TempDir()
	conf, table := filepath.Join(dir, "krb5.conf"), filepath.Join(dir, "keytab")
	t.Setenv(envKrbConf, filepath.Join(dir, "none"))
	t.Setenv(envKeytab, "")
	t.Setenv(envCache, "FILE:"+filepath.Join(dir, "cache"))
	fails := func(path, want string) {
		t.Helper()
		_, err := options(mustParse(t, path))
		var u *vfs.InputError
		if !errors.As(err, &u) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v, want %q", err, want)
		}
	}
	fails("hdfs://nn/x", "krb5.conf")
	if err := os.WriteFile(conf, []byte(krb5), 0o666); err != nil {
		t.Fatal(err)
	}
	t.Setenv(envKrbConf, conf)
	fails("hdfs://nn/x", "run kinit")
	fails("hdfs://alice@nn/x", "leave the user out")
	t.Setenv(envCache, "KEYRING:persistent:0")
	fails("hdfs://nn/x", "only ticket caches of kind FILE")
	t.Setenv(envKeytab, table)
	fails("hdfs://nn/x", "keytab")
	k := keytab.New()
	if err := k.AddEntry("taxon", "EXAMPLE.ORG", "secret", time.Unix(0, 0), 1, 18); err != nil {
		t.Fatal(err)
	}
	b, err := k.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(table, b, 0o600); err != nil {
		t.Fatal(err)
	}
	fails("hdfs://nn/x", "login of taxon@EXAMPLE.ORG")
	t.Setenv(envPrincipal, "other@EXAMPLE.ORG")
	fails("hdfs://nn/x", "login of other@EXAMPLE.ORG")
	site(t, "hadoop.security.authentication", "kerberos", "dfs.namenode.kerberos.principal", "nn/_HOST@EXAMPLE.ORG",
		"dfs.data.transfer.protection", "integrity")
	fails("hdfs://nn/x", "privacy with dfs.encrypt.data.transfer.cipher.suites")
}

// TestForeignServers checks that a foreign server on the port gives one line, within a short time.
func TestForeignServers(t *testing.T) {
	site(t)
	huge := binary.BigEndian.AppendUint32(nil, 1<<30)
	for name, answer := range map[string][]byte{"closes": nil, "web": []byte("HTTP/1.1 404 Not Found\r\n\r\n"),
		"huge": huge, "text": []byte("220 mail\r\n")} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				buf := make([]byte, 7) // the header that opens each connection
				_, _ = c.Read(buf)
				_, _ = c.Write(answer)
				c.Close()
			}
		}()
		f, err := Dial(context.Background(), mustParse(t, "hdfs://u@"+l.Addr().String()+"/x"), 0)
		var u *vfs.InputError
		if !errors.As(err, &u) || !strings.Contains(err.Error(), "no HDFS name node answers at "+l.Addr().String()) {
			t.Errorf("%s: %v", name, err)
		}
		if f != nil {
			f.Close()
		}
		l.Close()
		<-done
	}
}

func TestCancelledDial(t *testing.T) {
	site(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Dial(ctx, mustParse(t, "hdfs://u@127.0.0.1:1/x"), time.Minute); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
