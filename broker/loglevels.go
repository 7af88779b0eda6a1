package broker

import (
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"sluice/broker/api"
)

// logLevels shows the one level of the program's log as the logger that Kafka calls root.
type logLevels struct {
	level      *zap.AtomicLevel
	configured zapcore.Level
}

const rootLogger = "root"

func newLogLevels(level *zap.AtomicLevel) api.LogLevels {
	if level == nil {
		return nil
	}
	return &logLevels{level: level, configured: level.Level()}
}

// kafkaLevels pairs Kafka's names with the level that logs the same; the first of two names is the one that is shown.
var kafkaLevels = []struct {
	name  string
	level zapcore.Level
}{
	{"DEBUG", zapcore.DebugLevel}, {"TRACE", zapcore.DebugLevel}, {"INFO", zapcore.InfoLevel}, {"WARN", zapcore.WarnLevel},
	{"ERROR", zapcore.ErrorLevel}, {"FATAL", zapcore.FatalLevel},
}

func (l *logLevels) Levels() map[string]string {
	for _, k := range kafkaLevels {
		if k.level == l.level.Level() {
			return map[string]string{rootLogger: k.name}
		}
	}
	return map[string]string{rootLogger: "FATAL"}
}

func (l *logLevels) Set(logger, level string) {
	if logger != rootLogger {
		return // the handlers have refused every other name
	}
	if level == "" {
		l.level.SetLevel(l.configured)
	}
	for _, k := range kafkaLevels {
		if k.name == level {
			l.level.SetLevel(k.level)
		}
	}
}
