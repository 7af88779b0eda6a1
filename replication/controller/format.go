package controller

import (
	"sluice/replication/metadata"
	"sluice/storage/vfs"
)

// FormatOptions describe a new data directory.
type FormatOptions struct {
	FS              vfs.FS
	Dirs            []string // log directories; the first one is the metadata log directory unless MetadataDir is set
	MetadataDir     string
	ClusterID       string
	NodeID          metadata.BrokerID
	Features        []metadata.Feature
	IgnoreFormatted bool // leave directories alone that are formatted already
	NowMs           int64
}

// Format writes meta.properties and the bootstrap snapshot as Kafka's storage tool does.
func Format(o FormatOptions) error { panic("not written yet") }
