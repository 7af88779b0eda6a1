// Package fetchsession remembers what each fetcher asks for, so that a Fetch needs to name only what changed and its answer only what is
// new (KIP-227). Its limits and its choice of whom to drop are Apache Kafka's.
package fetchsession
