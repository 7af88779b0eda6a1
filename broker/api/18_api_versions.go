package api

import "github.com/twmb/franz-go/pkg/kmsg"

// Features are the feature levels of this broker and of the cluster.
type Features interface {
	// Supported are the levels that this build can run.
	Supported() []SupportedFeature
	// Finalized are the levels in force, and the offset of the metadata they were read at; -1 when they are not known yet.
	Finalized() (levels map[string]int16, epoch int64)
}

// SupportedFeature is a range of levels, both ends inclusive. A MinLevel of 0 means that the feature may be off.
type SupportedFeature struct {
	Name               string
	MinLevel, MaxLevel int16
}

func (h *Handlers) apiVersions(c *Context, request *kmsg.ApiVersionsRequest) Reply {
	panic("not written yet")
}
