package checkpoint

import (
	"fmt"
	"strconv"

	"sluice/protocol/uuid"
	"sluice/storage/vfs"
)

// MetaPropertiesFile is the name of the file in a log directory that says whose directory it is.
const MetaPropertiesFile = "meta.properties"

// maxMetaBytes bounds the files that hold a handful of short values.
const maxMetaBytes = 1 << 20

// MetaProperties say which node of which cluster a log directory belongs to.
type MetaProperties struct {
	// Version is 1, or 0 for a file that a broker with ZooKeeper wrote.
	Version   int
	ClusterID string // may be empty in version 0
	NodeID    int32  // -1 where version 0 has none
	// DirectoryID is the id by which the controller knows the directory; zero in files older than directory ids.
	DirectoryID uuid.UUID
}

// AppendMetaProperties appends the file to dst, in version 1, with its properties in the order in which Kafka writes them.
func AppendMetaProperties(dst []byte, m MetaProperties) []byte {
	return AppendProperties(dst, []Property{
		{"node.id", strconv.Itoa(int(m.NodeID))},
		{"directory.id", m.DirectoryID.String()},
		{"version", "1"},
		{"cluster.id", m.ClusterID},
	})
}

// ParseMetaProperties reads the file; name is for errors.
func ParseMetaProperties(name string, content []byte) (MetaProperties, error) {
	properties, err := ParseProperties(name, content)
	if err != nil {
		return MetaProperties{}, err
	}
	m := MetaProperties{NodeID: -1, ClusterID: properties["cluster.id"]}
	corrupt := func(format string, args ...any) (MetaProperties, error) {
		return MetaProperties{}, &Corrupt{Path: name, Reason: fmt.Sprintf(format, args...)}
	}
	switch v := properties["version"]; v {
	case "", "0":
	case "1":
		m.Version = 1
	default:
		return corrupt("version %s is unknown", quote(v))
	}
	idKey := "node.id"
	if m.Version == 0 {
		idKey = "broker.id"
	}
	if text, ok := properties[idKey]; ok {
		id, err := strconv.ParseInt(text, 10, 32)
		if err != nil || id < 0 && m.Version > 0 {
			return corrupt("%s %s is not a number of at least 0", idKey, quote(text))
		}
		m.NodeID = int32(id)
	} else if m.Version > 0 {
		return corrupt("%s is missing", idKey)
	}
	if m.Version > 0 && m.ClusterID == "" {
		return corrupt("cluster.id is missing")
	}
	if text, ok := properties["directory.id"]; ok {
		if m.DirectoryID, err = uuid.Parse(text); err != nil {
			return corrupt("directory.id: %v", err)
		}
		if m.DirectoryID.IsReserved() {
			return corrupt("directory.id %s is reserved", m.DirectoryID)
		}
	}
	return m, nil
}

// WriteMetaProperties replaces the file in a log directory atomically.
func WriteMetaProperties(fsys vfs.FS, dir string, m MetaProperties) error {
	return WriteFile(fsys, dir+"/"+MetaPropertiesFile, AppendMetaProperties(nil, m))
}

// ReadMetaProperties reads the file of a log directory; the error wraps fs.ErrNotExist where there is none.
func ReadMetaProperties(fsys vfs.FS, dir string) (MetaProperties, error) {
	name := dir + "/" + MetaPropertiesFile
	content, err := ReadFile(fsys, name, maxMetaBytes)
	if err != nil {
		return MetaProperties{}, err
	}
	return ParseMetaProperties(name, content)
}
