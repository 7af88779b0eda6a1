package config

// clientMetricsRows: what may be set for one subscription to client metrics.
var clientMetricsRows = []Row{
	{Name: "interval.ms", Type: Int, Default: "300000",
		Ignored: notServed("client metrics"),
		Doc:     "Milliseconds between two pushes of metrics by the clients that match."},
	{Name: "match", Type: List, Valid: AnyList,
		Ignored: notServed("client metrics"),
		Doc:     "Which clients are meant: PARAMETER=REGULAR EXPRESSION, comma-separated."},
	{Name: "metrics", Type: List, Valid: AnyList,
		Ignored: notServed("client metrics"),
		Doc:     "Prefixes of the names of the metrics that are wanted; * means all."},
}
