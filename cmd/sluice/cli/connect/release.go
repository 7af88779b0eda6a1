package connect

import (
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"
)

// Release is the newest release of Apache Kafka whose version of each API a broker has, of those that the broker offers at all: "4.4". Empty
// if there is none. What a broker does not offer says nothing of how new it is: Sluice leaves away what it does not do.
func Release(offered []kmsg.ApiVersionsResponseApiKey) string {
	if len(offered) == 0 {
		return ""
	}
	for _, name := range kversion.VersionStrings() { // newest first
		release := kversion.FromString(name)
		if release == nil {
			continue
		}
		older := slices.ContainsFunc(offered, func(api kmsg.ApiVersionsResponseApiKey) bool {
			wanted, ok := release.LookupMaxKeyVersion(api.ApiKey)
			return ok && api.MaxVersion < wanted
		})
		if !older {
			return strings.TrimPrefix(name, "v")
		}
	}
	return ""
}
