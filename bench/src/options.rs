//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

#[derive(Parser)]
#[command(version, about, args_conflicts_with_subcommands = true)]
pub(crate) struct Options {
    #[command(subcommand)]
    pub(crate) command: Option<Task>,
    #[command(flatten)]
    pub(crate) server: OneServer,
    #[command(flatten)]
    pub(crate) measure: Measure,
}

#[derive(Subcommand)]
pub(crate) enum Task {
    /// Kills a server under load, again and again, and checks that nothing was lost
    Crash(Crash),
    /// Measures several servers in turn, several rounds, and compares the medians
    Alternate(Box<Alternate>),
    /// Compares reports that --json wrote, by their labels
    Compare(Compare),
    /// Counts the instructions of fixed sequences of requests, and compares them with a file
    Instructions(Instructions),
}

#[derive(Args)]
pub(crate) struct OneServer {
    /// The kubeconfig of the server; read after each start
    #[arg(long, value_name = "FILE", default_value = "admin.kubeconfig")]
    pub(crate) kubeconfig: PathBuf,
    /// A shell command that runs the server in the foreground; without one the server must be
    /// running
    #[arg(long, value_name = "COMMAND")]
    pub(crate) start: Option<String>,
    /// A shell command that stops it; without one it gets SIGTERM
    #[arg(long, value_name = "COMMAND")]
    pub(crate) stop: Option<String>,
    /// A label for the report: which server, durable or not
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub(crate) label: String,
    /// Also writes the figures to this file, as JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
}

#[derive(Args)]
pub(crate) struct Measure {
    /// The measurements: start, restart, create, get, update, patch, delete, watch, list,
    /// encodings, definitions, tokens. Only if named: nodes, watches of one node's pods each; idle,
    /// the memory of idle watches; tenants, gets of one tenant beside many clients of another;
    /// cluster, the traffic of many kubelets; paths, gets of each --path; and pauses, the longest
    /// time without a response, while you cause a failure
    #[arg(long, value_name = "CASE,…", value_delimiter = ',')]
    pub(crate) only: Vec<String>,
    /// The duration of each measurement
    #[arg(long, default_value_t = 5)]
    pub(crate) seconds: u64,
    /// The numbers of clients that read and write at once
    #[arg(long, value_name = "COUNT,…", value_delimiter = ',', default_value = "1,16,64")]
    pub(crate) clients: Vec<usize>,
    /// The numbers of pods in lists
    #[arg(long, value_name = "COUNT,…", value_delimiter = ',', default_value = "1000,10000")]
    pub(crate) list_sizes: Vec<usize>,
    /// The numbers of watchers
    #[arg(long, value_name = "COUNT,…", value_delimiter = ',', default_value = "1,100,1000")]
    pub(crate) watchers: Vec<usize>,
    /// Another server of the same database, for the watchers
    #[arg(long, value_name = "FILE")]
    pub(crate) watch_kubeconfig: Option<PathBuf>,
    /// The number of objects at a restart
    #[arg(long, value_name = "COUNT", default_value_t = 100_000)]
    pub(crate) objects: usize,
    /// CustomResourceDefinitions in YAML that are copied under other names
    #[arg(long = "definition", value_name = "FILE")]
    pub(crate) models: Vec<PathBuf>,
    /// The number of copies
    #[arg(long, value_name = "COUNT", default_value_t = 2_000)]
    pub(crate) definitions: usize,
    /// A pod in YAML, instead of the default
    #[arg(long, value_name = "FILE")]
    pub(crate) pod: Option<PathBuf>,
    /// Create a ResourceQuota in the namespaces of single objects
    #[arg(long)]
    pub(crate) quota: bool,
    /// A file of bearer tokens, one a line, for the measurement tokens: each request has the next
    /// one, without a client certificate
    #[arg(long, value_name = "FILE")]
    pub(crate) tokens: Option<PathBuf>,
    /// Send single requests over HTTP/2.
    #[arg(long)]
    pub(crate) http2: bool,
    /// The number of threads of the load generator
    #[arg(long, value_name = "COUNT", default_value_t = 1)]
    pub(crate) threads: usize,
    /// A path that the measurement paths gets, as of a file server
    #[arg(long = "path", value_name = "PATH")]
    pub(crate) paths: Vec<String>,
}

#[derive(Args)]
pub(crate) struct Alternate {
    /// A server: its label, its kubeconfig, and the shell command that runs it in the foreground
    #[arg(long = "side", num_args = 3, value_names = ["LABEL", "KUBECONFIG", "COMMAND"], required = true)]
    pub(crate) sides: Vec<String>,
    /// The number of rounds; each measures every server once
    #[arg(long, default_value_t = 3)]
    pub(crate) rounds: usize,
    /// The folder for the reports of all rounds, as JSON
    #[arg(long, value_name = "FOLDER")]
    pub(crate) reports: PathBuf,
    #[command(flatten)]
    pub(crate) measure: Measure,
}

#[derive(Args)]
pub(crate) struct Compare {
    /// Reports
    #[arg(value_name = "FILE", required = true)]
    pub(crate) reports: Vec<PathBuf>,
}

#[derive(Args)]
pub(crate) struct Instructions {
    /// The server's binary, a release build; valgrind runs it
    #[arg(long, value_name = "FILE")]
    pub(crate) server_binary: PathBuf,
    /// The recorded counts
    #[arg(long, value_name = "FILE", default_value = "bench/instructions.json")]
    pub(crate) recorded: PathBuf,
    /// Counts another pod than the default one
    #[arg(long, value_name = "FILE", conflicts_with = "record")]
    pub(crate) pod: Option<PathBuf>,
    /// The folder for callgrind's profiles of the sequences, to be read with callgrind_annotate
    #[arg(long, value_name = "FOLDER")]
    pub(crate) profiles: Option<PathBuf>,
    /// Records the counts of this run
    #[arg(long)]
    pub(crate) record: bool,
}

#[derive(Args)]
pub(crate) struct Crash {
    /// The server's binary; it is run as `BINARY serve --data-dir … --secure-port 0`
    #[arg(long, value_name = "FILE")]
    pub(crate) server_binary: PathBuf,
    /// The number of kills
    #[arg(long, default_value_t = 100)]
    pub(crate) rounds: usize,
    /// The number of writers
    #[arg(long, default_value_t = 64)]
    pub(crate) clients: usize,
    /// The number of watchers
    #[arg(long, default_value_t = 4)]
    pub(crate) watchers: usize,
    /// The seed of the times of the kills and the choice of the writes
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
}
