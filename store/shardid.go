package store

import (
	"crypto/rand"
	"errors"
	"fmt"
	iofs "io/fs"
	"path/filepath"
	"strings"

	"taxon/internal/fs/vfs"
)

// IDFile is the name of the file in a shard's folder that holds its id.
const IDFile = "shard.id"

// idHead begins the file. The number is its version.
const idHead = "taxon-shard 1 "

// ShardID returns the id of the shard in a folder of fs, which must exist. The id decides which
// values are placed on the shard, so it stays with the data wherever they are served from. The
// first call chooses it: want, or a random id if want is empty. A later call fails with ErrInvalid
// if want is neither empty nor the id. An id must be a valid job id (see ValidateJob).
func ShardID(fs vfs.FS, dir, want string) (string, error) {
	if want != "" {
		if err := ValidateJob(want); err != nil {
			return "", fmt.Errorf("shard id: %w", err)
		}
	}
	path := filepath.Join(dir, IDFile)
	b, err := vfs.ReadFile(fs, path)
	if errors.Is(err, iofs.ErrNotExist) {
		return makeID(fs, path, want)
	}
	if err != nil {
		return "", fmt.Errorf("shard id: %w", err)
	}
	id, _, _ := strings.Cut(strings.TrimPrefix(string(b), idHead), " ")
	if string(b) != idText(id) || ValidateJob(id) != nil {
		return "", fmt.Errorf("%s: %w: the shard's id is damaged, or of a later version than 1: take a new folder", path,
			ErrCorrupt)
	}
	if want != "" && want != id {
		return "", fmt.Errorf("%s: %w: the folder is that of shard %s, not of %s: take another folder", path, ErrInvalid, id,
			want)
	}
	return id, nil
}

// idText returns the content of the file. It ends in the CRC32C of the id.
func idText(id string) string { return fmt.Sprintf("%s%s %08x\n", idHead, id, Checksum([]byte(id))) }

// makeID makes the file, with a random id if id is empty.
func makeID(fs vfs.FS, path, id string) (string, error) {
	if id == "" {
		id = "shard-" + strings.ToLower(rand.Text()[:16])
	}
	if err := vfs.WriteFile(fs, path, []byte(idText(id)), 0o644); err != nil {
		return "", fmt.Errorf("shard id: %w", err)
	}
	return id, nil
}
