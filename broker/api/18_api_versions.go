package api

// ApiVersions (key 18): which APIs, versions and features this broker speaks. The first request of nearly every connection.
//
// Versions 0–5: 1 adds the throttle time, 2 nothing, 3 is flexible and adds the client's software name and version to the request and
// the features to the response, 4 lets a feature have a minimum level of 0 (left out of the answers before, which could not be read),
// 5 lets the client name the cluster and node it means to reach, and be told to bootstrap anew (KIP-1242).
//
// A version that this broker does not know is answered in version 0 with UNSUPPORTED_VERSION and the range of ApiVersions alone
// (KIP-511): the client tries again in a version of that range. The response header is version 0 in every version.
//
// As Apache Kafka but for the order of features, which it leaves to a hash map and we sort by name. Of the finalized features only those are
// told that this broker serves; more may stand in the metadata log of a directory that Apache Kafka used before.

import (
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/broker/server"
)

func (h *Handlers) apiVersions(c *Context, request *kmsg.ApiVersionsRequest) Reply {
	response := kmsg.NewPtrApiVersionsResponse()
	if !validApiVersionsRequest(request) {
		response.ErrorCode = kerr.InvalidRequest.Code
		return Respond(response)
	}
	c.Request.Conn.SetClientSoftware(server.ClientSoftware{Name: request.ClientSoftwareName, Version: request.ClientSoftwareVersion})
	image := h.Controller.Image()
	if request.ClusterID != nil && (*request.ClusterID != image.ClusterID() || request.NodeID != int32(h.NodeID)) {
		response.ErrorCode = kerr.RebootstrapRequired.Code
		return Respond(response)
	}
	for _, row := range h.table {
		if row == nil {
			continue
		}
		key := kmsg.NewApiVersionsResponseApiKey()
		key.ApiKey, key.MinVersion, key.MaxVersion = row.key, row.advertisedMin, row.max
		response.ApiKeys = append(response.ApiKeys, key)
	}
	for _, feature := range h.Features {
		if request.Version < 4 && feature.Min == 0 {
			continue
		}
		key := kmsg.NewApiVersionsResponseSupportedFeature()
		key.Name, key.MinVersion, key.MaxVersion = feature.Name, feature.Min, feature.Max
		response.SupportedFeatures = append(response.SupportedFeatures, key)
	}
	slices.SortFunc(response.SupportedFeatures, func(a, b kmsg.ApiVersionsResponseSupportedFeature) int { return strings.Compare(a.Name, b.Name) })

	levels, epoch := image.FinalizedFeatures()
	response.FinalizedFeaturesEpoch = epoch
	for _, feature := range h.Features { // a level that Apache Kafka left in the metadata log promises nothing of what is not served here
		level := levels[feature.Name]
		if level == 0 {
			continue
		}
		key := kmsg.NewApiVersionsResponseFinalizedFeature()
		key.Name, key.MinVersionLevel, key.MaxVersionLevel = feature.Name, level, level
		response.FinalizedFeatures = append(response.FinalizedFeatures, key)
	}
	slices.SortFunc(response.FinalizedFeatures, func(a, b kmsg.ApiVersionsResponseFinalizedFeature) int { return strings.Compare(a.Name, b.Name) })
	return Respond(response)
}

func validApiVersionsRequest(request *kmsg.ApiVersionsRequest) bool {
	if request.Version >= 5 && (request.ClusterID == nil) != (request.NodeID == -1) {
		return false // both or none
	}
	return request.Version < 3 || validSoftware(request.ClientSoftwareName) && validSoftware(request.ClientSoftwareVersion)
}

// validSoftware is the rule for names and versions of client software: letters, digits, '-' and '.', with a letter or digit at both ends.
func validSoftware(s string) bool {
	for i := range len(s) {
		switch b := s[i]; {
		case 'a' <= b && b <= 'z', 'A' <= b && b <= 'Z', '0' <= b && b <= '9':
		case (b == '-' || b == '.') && i > 0 && i < len(s)-1:
		default:
			return false
		}
	}
	return s != ""
}

// unsupportedApiVersions is the answer to a version of ApiVersions that the row does not have. It is sent in version 0.
func unsupportedApiVersions(row *row) kmsg.Response {
	response := kmsg.NewPtrApiVersionsResponse()
	response.ErrorCode = kerr.UnsupportedVersion.Code
	key := kmsg.NewApiVersionsResponseApiKey()
	key.ApiKey, key.MinVersion, key.MaxVersion = row.key, row.advertisedMin, row.max
	response.ApiKeys = []kmsg.ApiVersionsResponseApiKey{key}
	return response
}
