package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"sluice/broker"
	"sluice/broker/config"
	"sluice/cmd/sluice/cli/exit"
)

// stopTimeout bounds how long SIGTERM waits for what is in flight. With what comes after it, it is below the ten seconds after which Docker
// kills a container.
const stopTimeout = 8 * time.Second

type serveFlags struct {
	config    string
	data      string
	ephemeral bool
	listen    string
	admin     string
	set       []string
	logLevel  string
	logFormat string
}

func newServeCommand() *cobra.Command {
	var f serveFlags
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the broker (what sluice does without a command)",
		Long: `Run the broker until SIGTERM or Ctrl-C; a second one leaves at once.

Without --config this is the dev profile: one node, internal topics with one replica, no rebalance
delay, an empty data directory formatted by itself. With --config the file's settings hold, and Kafka's
defaults where it has none; the data directory must have been formatted by "sluice format".

Any Kafka broker config can be given by --set, or by a KAFKA_* environment variable as in the
apache/kafka image (KAFKA_NUM_PARTITIONS=3). --set and the other flags win over the environment,
the environment over the file, and the file over the profile.`,
		Example: `  sluice
  sluice serve --listen 127.0.0.1:19092 --ephemeral
  sluice serve --set num.partitions=3 --set auto.create.topics.enable=false
  sluice serve --config server.properties`,
		Args:          exit.Args(cobra.NoArgs),
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if flag := cmd.Flag("data"); flag.Changed && f.data == "" {
				return exit.Usagef("--data is empty: name a directory, or leave it out")
			}
			return serve(cmd.Context(), f)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.config, "config", "", "a Kafka server.properties `FILE`")
	flags.StringVar(&f.data, "data", "", "keep everything in `DIR` (default "+defaultDataDir()+"; with --config the file's log.dirs)")
	flags.BoolVar(&f.ephemeral, "ephemeral", false, "keep everything in memory, nothing on disk")
	flags.StringVar(&f.listen, "listen", "", "serve clients on `HOST:PORT` (default localhost:9092; with --config the file's listeners)")
	flags.StringVar(&f.admin, "admin", "localhost:9644", "serve metrics and health on `HOST:PORT`, or off")
	flags.StringArrayVar(&f.set, "set", nil, "set a Kafka broker config, `KEY=VALUE`; may be given several times")
	flags.StringVar(&f.logLevel, "log-level", "info", "log `LEVEL`: debug, info, warn or error")
	flags.StringVar(&f.logFormat, "log-format", "console", "log `FORMAT`: console or json")
	return cmd
}

func serve(ctx context.Context, f serveFlags) error {
	log, level, err := newLogger(f.logLevel, f.logFormat)
	if err != nil {
		return err
	}
	defer func() { _ = log.Sync() }() // stderr cannot be synced on every system, and nothing is lost
	c, err := f.brokerConfig(log)
	if err != nil {
		return err
	}
	c.LogLevel = &level

	// A terminal that is closed is a reason to stop, and one that nobody reads any more is none to die of a log line.
	signal.Ignore(syscall.SIGPIPE)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)
	starting, cancel := context.WithCancel(ctx)
	defer cancel()
	started := make(chan struct{})
	defer close(started)
	go func() { // a signal while logs are recovered ends the start
		select {
		case s := <-signals:
			signals <- s
			cancel()
		case <-started:
		}
	}()

	b, err := broker.Start(starting, c)
	if err != nil {
		if starting.Err() != nil && ctx.Err() == nil {
			return errors.New("stopped before the broker had started")
		}
		return err
	}
	select {
	case s := <-signals:
		log.Info("stopping", zap.Stringer("signal", s))
	case <-b.Failed():
	}
	stopping, cancelStop := context.WithTimeout(ctx, stopTimeout)
	defer cancelStop()
	go leaveAtOnce(signals)
	return errors.Join(b.Stop(stopping), b.Err())
}

// sameSignal is how close together signals count as one: a shell or a supervisor may send one to the process and again to its group.
const sameSignal = 500 * time.Millisecond

// leaveAtOnce ends the program at the second signal.
func leaveAtOnce(signals <-chan os.Signal) {
	for first := time.Now(); ; {
		<-signals
		if time.Since(first) > sameSignal {
			os.Exit(1)
		}
	}
}

// brokerConfig turns the command line into what the broker starts from.
func (f serveFlags) brokerConfig(log *zap.Logger) (broker.Config, error) {
	c := broker.Config{
		Dev:         f.config == "",
		Environment: os.Environ(),
		Overrides:   map[string]string{},
		DataDir:     f.data,
		Ephemeral:   f.ephemeral,
		Listen:      f.listen,
		Admin:       f.admin,
		Version:     programVersion(),
		Log:         log,
	}
	for _, pair := range f.set {
		key, value, ok := strings.Cut(pair, "=")
		if key = strings.TrimSpace(key); !ok || key == "" {
			return c, exit.Usagef("--set %s: want KEY=VALUE", pair)
		}
		c.Overrides[key] = value
	}
	if f.ephemeral && f.data != "" {
		return c, exit.Usagef("--ephemeral keeps nothing on disk, --data names a directory: give one of them")
	}
	for flag, address := range map[string]string{"--listen": f.listen, "--admin": f.admin} {
		if address == "" || flag == "--admin" && address == "off" {
			continue
		}
		if _, port, err := net.SplitHostPort(address); err != nil || port == "" {
			return c, exit.Usagef("%s %s: want HOST:PORT", flag, address)
		}
	}
	if f.config != "" {
		file, err := os.Open(f.config)
		if err != nil {
			return c, fmt.Errorf("cannot read the properties file: %w", err)
		}
		defer file.Close()
		if c.Properties, err = config.ParseProperties(file); err != nil {
			return c, fmt.Errorf("%s: %w", f.config, err)
		}
	}
	if c.Dev && !f.ephemeral {
		c.DefaultDataDir = defaultDataDir()
		if c.DefaultDataDir == "" && f.data == "" {
			return c, exit.Usagef("no home directory is known, so there is no default for data: give --data DIR, or --ephemeral")
		}
	}
	return c, nil
}

// defaultDataDir is the folder sluice in the user's data directory, as each system has it; empty when the user has none.
func defaultDataDir() string {
	if dir := os.Getenv("XDG_DATA_HOME"); filepath.IsAbs(dir) && runtime.GOOS != "windows" && runtime.GOOS != "darwin" {
		return filepath.Join(dir, "sluice")
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	switch runtime.GOOS {
	case "windows":
		if dir := os.Getenv("LocalAppData"); dir != "" {
			return filepath.Join(dir, "sluice")
		}
		return filepath.Join(home, "AppData", "Local", "sluice")
	case "darwin":
		return filepath.Join(home, "Library", "Application Support", "sluice")
	}
	return filepath.Join(home, ".local", "share", "sluice")
}

func newLogger(level, format string) (*zap.Logger, zap.AtomicLevel, error) {
	at, err := zap.ParseAtomicLevel(level)
	if err != nil {
		return nil, at, exit.Usagef("--log-level %s: want debug, info, warn or error", level)
	}
	encoding := zap.NewProductionEncoderConfig()
	encoding.TimeKey, encoding.EncodeTime = "time", zapcore.ISO8601TimeEncoder
	encoding.EncodeDuration = zapcore.StringDurationEncoder
	var encoder zapcore.Encoder
	switch format {
	case "json":
		encoder = zapcore.NewJSONEncoder(encoding)
	case "console":
		encoding.EncodeLevel = zapcore.CapitalLevelEncoder
		encoding.ConsoleSeparator = "  "
		encoder = zapcore.NewConsoleEncoder(encoding)
	default:
		return nil, at, exit.Usagef("--log-format %s: want console or json", format)
	}
	return zap.New(zapcore.NewCore(encoder, zapcore.Lock(os.Stderr), at)), at, nil
}
