package config

// fetchRows: fetching and waiting requests.
var fetchRows = []Row{
	{Name: "fetch.max.bytes", Type: Int, Default: "57671680", Valid: AtLeast(1024),
		Doc: "The most bytes that one Fetch response carries, whatever the client asks for. The first batch always passes."},
	{Name: "max.incremental.fetch.session.cache.slots", Type: Int, Default: "1000", Valid: AtLeast(0),
		Doc: "How many incremental fetch sessions the broker remembers."},
	{Name: "fetch.purgatory.purge.interval.requests", Type: Int, Default: "1000",
		Ignored: waitListsAreExact,
		Doc:     "How many answered Fetch requests may linger among the waiting ones before they are removed."},
	{Name: "producer.purgatory.purge.interval.requests", Type: Int, Default: "1000",
		Ignored: waitListsAreExact,
		Doc:     "How many answered Produce requests may linger among the waiting ones before they are removed."},
	{Name: "delete.records.purgatory.purge.interval.requests", Type: Int, Default: "1",
		Ignored: waitListsAreExact,
		Doc:     "How many answered DeleteRecords requests may linger among the waiting ones before they are removed."},
	{Name: "share.fetch.purgatory.purge.interval.requests", Type: Int, Default: "1000",
		Ignored: waitListsAreExact,
		Doc:     "How many answered ShareFetch requests may linger among the waiting ones before they are removed."},
}
