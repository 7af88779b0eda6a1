package checkpoint

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strconv"

	"sluice/storage/vfs"
)

// CleanShutdownFile is the name of the file in a log directory that says that every log in it was flushed and closed.
const CleanShutdownFile = ".kafka_cleanshutdown"

// NoBrokerEpoch stands for a mark that does not say of which broker epoch it is.
const NoBrokerEpoch int64 = -1

// AppendCleanShutdown appends the file to dst.
func AppendCleanShutdown(dst []byte, brokerEpoch int64) []byte {
	dst = append(dst, `{"version":0,"brokerEpoch":`...)
	dst = strconv.AppendInt(dst, brokerEpoch, 10)
	return append(dst, '}')
}

// ParseCleanShutdown reads the file and returns the epoch of the broker that shut down; name is for errors. Fields that are unknown are
// ignored.
func ParseCleanShutdown(name string, content []byte) (brokerEpoch int64, err error) {
	var mark struct {
		Version     int    `json:"version"`
		BrokerEpoch *int64 `json:"brokerEpoch"`
	}
	if err := json.Unmarshal(content, &mark); err != nil {
		return NoBrokerEpoch, &Corrupt{Path: name, Reason: err.Error()}
	}
	if mark.BrokerEpoch == nil {
		return NoBrokerEpoch, &Corrupt{Path: name, Reason: "brokerEpoch is missing"}
	}
	return *mark.BrokerEpoch, nil
}

// WriteCleanShutdown leaves the mark. It must be the last write to the directory.
func WriteCleanShutdown(fsys vfs.FS, dir string, brokerEpoch int64) error {
	return WriteFile(fsys, dir+"/"+CleanShutdownFile, AppendCleanShutdown(nil, brokerEpoch))
}

// TakeCleanShutdown tells whether the mark is there and removes it durably, so that a crash from here on is seen as one. The mark counts by
// its presence: from one that is empty, as older versions of Kafka left it, or unreadable, only the epoch is missing.
func TakeCleanShutdown(fsys vfs.FS, dir string) (clean bool, brokerEpoch int64, err error) {
	name := dir + "/" + CleanShutdownFile
	content, err := ReadFile(fsys, name, maxMetaBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return false, NoBrokerEpoch, nil
	}
	if err != nil {
		return false, NoBrokerEpoch, err
	}
	brokerEpoch, err = ParseCleanShutdown(name, content)
	if err != nil {
		brokerEpoch = NoBrokerEpoch
	}
	if err := fsys.Remove(name); err != nil {
		return false, NoBrokerEpoch, fmt.Errorf("take the mark of a clean shutdown: %w", err)
	}
	if err := fsys.SyncDir(dir); err != nil {
		return false, NoBrokerEpoch, fmt.Errorf("take the mark of a clean shutdown: %w", err)
	}
	return true, brokerEpoch, nil
}
