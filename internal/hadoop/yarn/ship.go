package yarn

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"taxon/internal/cluster"
	"taxon/internal/cluster/client"
	"taxon/internal/cluster/secure"
	"taxon/internal/fs"
	"taxon/internal/fs/vfs"
	"taxon/internal/ui/format"
	"taxon/internal/ui/progress"
)

// shipment copies the files with which the containers start to HDFS.
type shipment struct {
	*UpOptions
	// dir is the cluster's folder.
	dir  string
	spec Spec
	// epoch is that of the previous coordinator. It is 0 if there was none.
	epoch uint64
	// made is the outermost folder that was created. It is empty if all existed.
	made string
	// empty reports that the cluster's folder existed and was empty.
	empty bool
}

// ship fills the cluster's folder. Only its owner can read it, because it contains keys.
func (s *shipment) ship(ctx context.Context) error {
	if err := s.makeFolder(); err != nil {
		return err
	}
	if err := fs.RemoveAll(failuresDir(s.dir)); err != nil { // from the last time
		return err
	}
	p, err := cluster.ReadPlace(ctx, fs.Join(s.dir, placeName))
	if err != nil && !errors.Is(err, iofs.ErrNotExist) {
		return err
	}
	s.epoch = p.Epoch
	if err := s.checkBefore(ctx); err != nil {
		return err
	}
	s.spec.Files = map[string]map[string]string{"": {}}
	for _, role := range Roles() {
		s.spec.Files[role] = map[string]string{}
	}
	s.spec.Env = map[string]string{}
	for _, ship := range []func(context.Context) error{s.shipConf, s.shipSecrets, s.shipRun, s.shipBinary} {
		if err := ship(ctx); err != nil {
			return err
		}
	}
	return nil
}

// undo removes what was created, if the cluster did not exist before.
func (s *shipment) undo() error {
	switch {
	case s.made != "":
		return fs.RemoveAll(s.made)
	case s.empty:
		_, err := removeOwn(s.dir)
		return err
	}
	return nil
}

// checkBefore returns an error for fewer stores than the cluster had before, because its jobs would
// wait for shards that never return.
func (s *shipment) checkBefore(ctx context.Context) error {
	file := fs.Join(s.dir, runName)
	data, err := fs.ReadFile(ctx, file)
	if errors.Is(err, iofs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	before, err := DecodeRun(file, data)
	if err != nil {
		return refuse("%w: is that the folder of another program?", err)
	}
	if before.Name != s.Name {
		return refuse("‹dir=%s›: is the folder of cluster %s: give ‹name=%s›, or another folder", format.QuoteIfNeeded(s.dir),
			before.Name, before.Name)
	}
	if before.Stores > s.Stores {
		return refuse("the cluster in %s had %s, and its jobs have values on each: give ‹stores=%d› or more, or begin anew "+
			"after `taxon yarn down ‹purge›`",
			s.dir, format.Counted(int64(before.Stores), "store", "stores"), before.Stores)
	}
	return nil
}

// makeFolder creates the cluster's folder, and records what to remove if starting fails.
func (s *shipment) makeFolder() error {
	made := ""
	for at := s.dir; at != fs.Dir(at); at = fs.Dir(at) {
		info, err := fs.Stat(at)
		if err == nil && !info.IsDir() {
			return fs.Inputf(at, 0, "is a file: give a folder for the cluster")
		}
		if err == nil {
			break
		}
		if !errors.Is(err, iofs.ErrNotExist) {
			return fs.Explain(at, err)
		}
		made = at
	}
	if made == "" {
		other, err := inFolder(s.dir)
		if err != nil {
			return err
		}
		if other != "" {
			return refuse("‹dir=%s›: holds %q, and is no cluster's folder: give an empty one, or one that is not there",
				format.QuoteIfNeeded(s.dir), other)
		}
		names, err := fs.ReadDirNames(s.dir)
		if err != nil || len(names) > 0 {
			return err
		}
		s.empty = true
	} else if err := fs.MkdirAll(s.dir); err != nil {
		return err
	}
	s.made = made
	if err := fs.Private(s.dir); err != nil {
		return err
	}
	return fs.WriteFile(fs.Join(s.dir, clusterMark), []byte("a cluster of `taxon yarn up`\n"))
}

// shipConf copies the HDFS configuration of this process, so that a path has the same meaning on
// all hosts.
func (s *shipment) shipConf(ctx context.Context) error {
	dir := confDir()
	if dir == "" {
		return nil
	}
	for _, name := range []string{"core-site.xml", "hdfs-site.xml"} {
		at, err := s.copy(ctx, filepath.Join(dir, name), fs.Join(s.dir, "conf", name))
		if errors.Is(err, iofs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		s.spec.Files[""][name] = at
		s.spec.Env["HADOOP_CONF_DIR"] = "."
	}
	return nil
}

// copy copies a small local file to HDFS.
func (s *shipment) copy(ctx context.Context, from, to string) (string, error) {
	data, err := vfs.ReadFile(vfs.OS, from)
	if err != nil {
		return "", err
	}
	if err := fs.MkdirAll(fs.Dir(to)); err != nil {
		return "", err
	}
	return to, errors.Join(ctx.Err(), fs.WriteFile(to, data))
}

// shipSecrets makes certificates, and copies tokens and the keytab. Each role gets its own
// certificate. Users who can read the folder client may call the cluster as its admin.
func (s *shipment) shipSecrets(ctx context.Context) error {
	if s.Keytab != "" {
		at, err := s.copy(ctx, s.Keytab, fs.Join(s.dir, "secrets", "client.keytab"))
		if err != nil {
			return err
		}
		s.spec.Files[""]["client.keytab"] = at
		s.spec.Keytab = at
		s.spec.Env["KRB5_CLIENT_KTNAME"] = "client.keytab"
		s.spec.Env["TAXON_KERBEROS_PRINCIPAL"] = s.Principal
	}
	if s.Insecure {
		return fs.RemoveAll(fs.Join(s.dir, client.Folder)) // from an earlier cluster
	}
	if s.Certs == "" {
		dir, err := os.UserConfigDir()
		if err != nil {
			return refuse("where to keep the cluster's certificates? %w: give ‹certs=DIR›", err)
		}
		s.Certs = filepath.Join(dir, "taxon", "yarn", s.Name)
	}
	authority, err := secure.OpenAuthority(s.Certs, time.Now())
	if err != nil {
		return refuse("‹certs›: %w", err)
	}
	ca, err := s.copy(ctx, authority.CertFile(), fs.Join(s.dir, "secrets", client.CAFile))
	if err != nil {
		return err
	}
	s.spec.Files[""][client.CAFile] = ca
	if _, err := s.copy(ctx, authority.CertFile(), fs.Join(s.dir, client.Folder, client.CAFile)); err != nil {
		return err
	}
	for _, name := range append(Roles(), client.CertName) {
		if err := s.shipIdentity(ctx, authority, name); err != nil {
			return err
		}
	}
	return nil
}

// tokensEnding is the suffix of a role's token file.
const tokensEnding = ".tokens"

// certDays is the validity of the processes' certificates, in days. A service that lives longer
// must be restarted within the year.
const certDays = 365

// shipIdentity makes the certificate of a role, or of callers.
func (s *shipment) shipIdentity(ctx context.Context, authority *secure.Authority, name string) error {
	r := secure.Request{Name: "yarn-" + name, Valid: certDays * 24 * time.Hour, Roles: []secure.Role{secure.Role(name)}}
	folder, token := "secrets", name+tokensEnding
	switch name {
	case client.CertName:
		r.Roles = []secure.Role{secure.Admin}
		folder, token = client.Folder, string(secure.Admin)+".token"
	case Coordinator, Store:
		r.Hosts = []string{cluster.ServerName}
	}
	issued, err := authority.Issue(r, time.Now())
	if err != nil {
		return refuse("‹certs›: %w", err)
	}
	for from, to := range map[string]string{issued.Cert: name + ".crt", issued.Key: name + ".key", filepath.Join(s.Certs,
		token): name + filepath.Ext(token)} {
		at, err := s.copy(ctx, from, fs.Join(s.dir, folder, to))
		if errors.Is(err, iofs.ErrNotExist) && from != issued.Cert && from != issued.Key {
			continue // tokens are optional
		}
		if err != nil {
			return err
		}
		if name != client.CertName {
			s.spec.Files[name][to] = at
		}
	}
	return nil
}

// shipRun writes the configuration of the processes.
func (s *shipment) shipRun(context.Context) error {
	tokens := slices.DeleteFunc(Roles(), func(role string) bool { return s.spec.Files[role][role+tokensEnding] == "" })
	data, err := s.Run(s.dir, tokens).Encode()
	if err != nil {
		return err
	}
	s.spec.Run = fs.Join(s.dir, runName)
	return fs.WriteFile(s.spec.Run, append(data, '\n'))
}

// shipBinary copies the program, once per version.
func (s *shipment) shipBinary(ctx context.Context) error {
	f, err := fs.OpenRegular(s.Binary)
	if err != nil {
		return err
	}
	defer f.Close()
	sum := sha256.New()
	size, err := io.Copy(sum, f)
	if err != nil {
		return fs.Explain(s.Binary, err)
	}
	s.spec.Program = fs.Join(s.dir, "bin", "taxon-"+hex.EncodeToString(sum.Sum(nil))[:16])
	if info, err := fs.Stat(s.spec.Program); err == nil && info.Size() == size {
		return nil
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return fs.Explain(s.Binary, err)
	}
	if err := fs.MkdirAll(fs.Dir(s.spec.Program)); err != nil {
		return err
	}
	out, err := fs.CreateFile(s.spec.Program)
	if err != nil {
		return err
	}
	defer out.Abort()
	line := s.UI.StartBytes("yarn: the binary", size)
	defer line.Done()
	if _, err := io.CopyBuffer(out, &watched{Reader: f, ctx: ctx, line: line}, make([]byte, 1<<20)); err != nil {
		return fmt.Errorf("yarn up: copy %s: %w", s.Binary, err)
	}
	return out.Commit()
}

// watched is a reader that shows progress and ends with ctx.
type watched struct {
	io.Reader
	ctx  context.Context
	done int64
	line progress.Progress
}

func (w *watched) Read(p []byte) (int, error) {
	n, err := w.Reader.Read(p)
	w.done += int64(n)
	w.line.Set(w.done)
	return n, cmp.Or(w.ctx.Err(), err)
}
