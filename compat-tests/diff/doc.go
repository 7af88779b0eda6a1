// Package diff asks Apache Kafka and Sluice the same questions and compares the answers field by field.
//
// A scenario is a sequence of requests at pinned versions over plain connections. Each step goes to both brokers, and what comes back is
// compared after the normalisations of normalise.go, and those only. "The connection was closed" and "nothing came" are answers too.
// There are three kinds of scenario:
//
//   - bounds: for each API and version, a valid request, and then the same request again and again with one field changed to each of its bounds
//     (bounds.go finds the fields by reflection, subjects*.go give the valid requests),
//   - frames: wrong versions, unknown APIs, cut and overlong bodies (frames.go),
//   - stories: many steps about one subject (story_*.go).
//
// A difference fails the test, or stands in ../differences.md with its reason. What Apache Kafka serves and Sluice does not yet is listed in
// ../pending.md, which `make diff` writes anew.
//
// DIFF_KAFKA and DIFF_SLUICE, HOST:PORT each, name brokers that run already; without them the test starts its own. DIFF_ITSELF=1 compares Apache
// Kafka with a second Apache Kafka: nothing may differ then, or the comparison is not sound. That it finds faults shows harness_test.go, which seeds
// them.
package diff
