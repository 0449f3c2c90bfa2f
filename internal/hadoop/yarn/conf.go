package yarn

import (
	"encoding/xml"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"taxon/internal/fs/hdfs"
	"taxon/internal/fs/vfs"
)

// Conf holds properties of Hadoop's configuration.
type Conf map[string]string

// ReadConf reads core-site.xml and yarn-site.xml of a folder. Missing files count as empty.
func ReadConf(dir string) (Conf, error) {
	c := Conf{}
	for _, name := range []string{"core-site.xml", "yarn-site.xml"} {
		file := filepath.Join(dir, name)
		data, err := vfs.ReadFile(vfs.OS, file)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if err := c.Parse(data); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	return c, nil
}

// Parse adds the properties of a configuration file. The last one of a name counts.
func (c Conf) Parse(data []byte) error {
	var doc struct {
		Property []struct {
			Name  string `xml:"name"`
			Value string `xml:"value"`
		} `xml:"property"`
	}
	if err := xml.Unmarshal(data, &doc); err != nil {
		return err
	}
	for _, p := range doc.Property {
		c[strings.TrimSpace(p.Name)] = strings.TrimSpace(p.Value)
	}
	return nil
}

// Get returns a property with its ${...} replaced; see hdfs.Property.
func (c Conf) Get(key string) string { return hdfs.Property(c, key) }

// Kerberos reports whether the cluster uses Kerberos.
func (c Conf) Kerberos() bool {
	return strings.EqualFold(c.Get("hadoop.security.authentication"), "kerberos")
}

// ErrNotConfigured reports that the configuration names no resource manager.
var ErrNotConfigured = errors.New("no resource manager is configured")

// ResourceManagers returns the addresses of the REST API. There are several if there is a standby.
func (c Conf) ResourceManagers() ([]string, error) {
	scheme, key, port := "http", "yarn.resourcemanager.webapp.address", "8088"
	if c.Get("yarn.http.policy") == "HTTPS_ONLY" {
		scheme, key, port = "https", "yarn.resourcemanager.webapp.https.address", "8090"
	}
	suffixes := []string{""}
	if c.Get("yarn.resourcemanager.ha.enabled") == "true" {
		suffixes = nil
		for id := range strings.SplitSeq(c.Get("yarn.resourcemanager.ha.rm-ids"), ",") {
			if id = strings.TrimSpace(id); id != "" {
				suffixes = append(suffixes, "."+id)
			}
		}
	}
	var out []string
	for _, s := range suffixes {
		addr := c.Get(key + s)
		if host := c.Get("yarn.resourcemanager.hostname" + s); addr == "" && host != "" {
			addr = host + ":" + port
		}
		if addr != "" {
			out = append(out, scheme+"://"+addr)
		}
	}
	if len(out) == 0 {
		return nil, ErrNotConfigured
	}
	return out, nil
}

// CheckURL checks an address that a user entered.
func CheckURL(raw string) error {
	u, err := url.Parse(raw)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.Path != "" && u.Path != "/" {
		return fmt.Errorf("%q: expected http://host:8088", raw)
	}
	return nil
}
