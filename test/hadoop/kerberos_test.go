package hadoop

import (
	"bytes"
	"path/filepath"
	"testing"

	"taxon/internal/fs"
)

// TestKerberos logs in to a real KDC with a keytab, and reads and writes an HDFS that requires
// Kerberos, at two levels of protection.
func TestKerberos(t *testing.T) {
	for _, protection := range []string{"authentication", "privacy"} {
		t.Run(protection, func(t *testing.T) {
			c := startCluster(t, Options{DataNodes: 1, Replication: 1, Protection: protection,
				HDFS: map[string]string{"dfs.blocksize": "1048576"}})
			t.Setenv("HADOOP_CONF_DIR", c.Conf())
			t.Setenv("KRB5_CONFIG", c.KerberosConf())
			t.Setenv("KRB5_CLIENT_KTNAME", c.Keytab())
			t.Setenv("TAXON_KERBEROS_PRINCIPAL", HDFSUser)
			data := noise(1, 3<<20+5)
			if err := fs.MkdirAll("hdfs:///dir"); err != nil {
				t.Fatal(err)
			}
			put(t, "hdfs:///dir/file", data)
			if got := get(t, "hdfs:///dir/file"); !bytes.Equal(got, data) {
				t.Errorf("%d bytes read, %d written, or others", len(got), len(data))
			}
			t.Setenv("TAXON_KERBEROS_PRINCIPAL", KerberosUser)
			if got := get(t, c.URL("/dir/file")); !bytes.Equal(got, data) {
				t.Error("another user reads other bytes")
			}
			wantInput(t, fs.WriteFile("hdfs:///dir/other", data), "hdfs:///dir/other", "permission denied")
			wantInput(t, fs.WriteFile("hdfs://bob@/x", data), "hdfs://bob@/x", "leave the user out")
			t.Setenv("TAXON_KERBEROS_PRINCIPAL", "bob@"+realm)
			_, err := fs.Open(t.Context(), fs.Local{}, "hdfs:///dir/file")
			wantInput(t, err, "hdfs:///dir/file", "login of bob@"+realm)
			t.Setenv("KRB5_CLIENT_KTNAME", "")
			t.Setenv("KRB5CCNAME", filepath.Join(t.TempDir(), "none"))
			_, err = fs.Open(t.Context(), fs.Local{}, "hdfs:///dir/file")
			wantInput(t, err, "hdfs:///dir/file", "run kinit")
		})
	}
}
