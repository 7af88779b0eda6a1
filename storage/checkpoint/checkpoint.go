// Package checkpoint reads and writes the small files of a data directory, in Kafka's formats: the offset checkpoints, the entries that
// leader-epoch-checkpoint consists of, meta.properties, partition.metadata and the mark of a clean shutdown.
//
// Files are replaced whole and atomically: after a crash there is the old content or the new one. Reading is bounded, and anything
// unexpected in a file is an error that names the file and the line.
package checkpoint

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"

	"sluice/storage/vfs"
)

// MaxBytes is the largest file that is read: more than a line for each of a million partitions with the longest topic name takes.
const MaxBytes = 512 << 20

// Corrupt is the error of a file whose content is not of its format.
type Corrupt struct {
	Path   string
	Line   int // from 1; 0 for the file as a whole
	Reason string
}

func (e *Corrupt) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("%s: %s", e.Path, e.Reason)
	}
	return fmt.Sprintf("%s: line %d: %s", e.Path, e.Line, e.Reason)
}

// WriteFile replaces the file at name with content. When it returns without error the content is durable; after an error or a crash the
// old content or the new one is there. Writes to one name must not overlap.
func WriteFile(fsys vfs.FS, name string, content []byte) error {
	temporary := name + ".tmp" // Kafka's name for it: either program overwrites what the other left
	err := writeDurably(fsys, temporary, content)
	if err == nil {
		if err = fsys.Rename(temporary, name); err == nil {
			if err = fsys.SyncDir(path.Dir(name)); err == nil {
				return nil
			}
			return fmt.Errorf("replace %s: %w", name, err)
		}
	}
	if removeErr := fsys.Remove(temporary); removeErr != nil && !errors.Is(removeErr, fs.ErrNotExist) {
		err = errors.Join(err, removeErr)
	}
	return fmt.Errorf("replace %s: %w", name, err)
}

func writeDurably(fsys vfs.FS, name string, content []byte) error {
	f, err := fsys.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(content, 0)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// ReadFile reads a file of at most maxBytes; a larger one is a *Corrupt error.
func ReadFile(fsys vfs.FS, name string, maxBytes int64) ([]byte, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	content, err := readAll(f, name, maxBytes)
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	return content, nil
}

func readAll(f vfs.File, name string, maxBytes int64) ([]byte, error) {
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	if size > maxBytes {
		return nil, &Corrupt{Path: name, Reason: fmt.Sprintf("%d bytes, the limit is %d", size, maxBytes)}
	}
	content := make([]byte, size)
	n, err := f.ReadAt(content, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return content[:n], nil
}
