package config

// metricsRows: measuring.
var metricsRows = []Row{
	{Name: "metrics.num.samples", Type: Int, Default: "2", Valid: AtLeast(1),
		Ignored: javaMetrics,
		Doc:     "How many samples a measured value is computed from."},
	{Name: "metrics.sample.window.ms", Type: Long, Default: "30000", Valid: AtLeast(1),
		Ignored: javaMetrics,
		Doc:     "The length in milliseconds of one sample."},
	{Name: "metrics.recording.level", Type: String, Default: "INFO",
		Ignored: javaMetrics,
		Doc:     "Which measured values are recorded: INFO, DEBUG or TRACE."},
	{Name: "metric.reporters", Type: List, Default: "org.apache.kafka.common.metrics.JmxReporter", Valid: AnyList, Update: ClusterWide,
		Ignored: javaMetrics,
		Doc:     "Java classes that receive measured values."},
	{Name: "kafka.metrics.polling.interval.secs", Type: Int, Default: "10", Valid: AtLeast(1),
		Ignored: javaMetrics,
		Doc:     "Seconds between two polls of the reporters in kafka.metrics.reporters."},
	{Name: "kafka.metrics.reporters", Type: List, Valid: AnyList,
		Ignored: javaMetrics,
		Doc:     "Java classes that receive values of the older metrics library."},
}
