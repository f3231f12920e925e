//! The one definition of what can be asked: from it come parsing, help and messages.

use crate::export::Format;
use crate::size::Size;
use cachewise_measure::Page;
use cachewise_measure::map::{Core, Share, UseKind, Walk};
use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Args as ClapArgs, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  cachewise                               who wins here, in under a minute
  cachewise list                          all slots and variants
  cachewise machine                       CPU, caches, measured latencies
  cachewise bench copy --size 4K,1M       all ways to copy, hot and cold
  cachewise bench clear --variant movnti,rep_stosq --temperature cold
  cachewise bench copy --peer ./libfoo.so:my_memcpy --format json
  cachewise map copy --quick              the later use and the bystanders counted
  cachewise compare before.json after.json --fail-on worse:3%
  cachewise report result.json -o result.html
  cachewise tune -o profile.toml          the policy for this machine, and its regret
  CACHEWISE_FORCE=clear_page=rep_stosq cachewise list
";

const BENCH_EXAMPLES: &str = "\
Examples:
  cachewise bench copy
  cachewise bench copy --size 64,4K,1MiB --temperature hot
  cachewise bench copy --size 4K --temperature cold --pattern random --threads 2
  cachewise bench copy --size 4K --align 1:0
  cachewise bench clear --peer ./libfoo.so:my_memset --format json > result.json
";

const MAP_EXAMPLES: &str = "\
Examples:
  cachewise map copy --quick
  cachewise map clear --format json > clear.json
  cachewise map copy --resume copy.json --format json > more.json
  cachewise map copy --size 1M --victim 256K --retouch 1 --source cold,hot
  cachewise map clear --size 4K --use 1 --use-kind write
";

const COMPARE_EXAMPLES: &str = "\
Examples:
  cachewise compare before.json after.json
  cachewise compare before.json after.json --fail-on worse:3%
  cachewise bench copy --format json | cachewise compare before.json -
";

const REPORT_EXAMPLES: &str = "\
Examples:
  cachewise report result.json -o result.html
  cachewise bench copy --format json | cachewise report - > result.html
";

const TUNE_EXAMPLES: &str = "\
Examples:
  cachewise tune --quick                  what would be chosen, and the regret
  cachewise tune -o profile.toml          then: CACHEWISE_PROFILE=profile.toml
  cachewise tune --from tune.json -o profile.toml          fits again, measures nothing
  cachewise tune --check profile.toml     does it still hold?
  cachewise tune --check profile.toml --fail-on differs    the same as a gate
  cachewise tune --glibc                  a GLIBC_TUNABLES line, if one is a gain
";

const TEMPLATE: &str = "\
{about-with-newline}
{before-help}{usage-heading} {usage}

{all-args}{after-help}";

/// Which way to copy and to clear memory wins on this machine, and from what size.
///
/// Without a subcommand: a quick verdict for each slot.
#[derive(Debug, Parser)]
#[command(
    name = "cachewise",
    version,
    before_help = EXAMPLES,
    help_template = TEMPLATE,
    max_term_width = 80,
    color = clap::ColorChoice::Never
)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    #[command(flatten)]
    pub(crate) quick: Quick,
    #[command(flatten)]
    pub(crate) output: Output,
}

impl Args {
    /// Parses the command line; ends the process after help, version or a message.
    pub(crate) fn from_command_line() -> Self {
        let mut command = Self::command();
        let matches = command.get_matches_mut();
        if let Some(name) = matches.subcommand_name() {
            // The output's arguments go before and after a subcommand. The quick verdict's don't
            // belong to it: before it they would be given for nothing.
            let given = |id: &str| matches.value_source(id) == Some(ValueSource::CommandLine);
            let quick = command.get_arguments().filter(|arg| !arg.is_global_set());
            if let Some(arg) = quick.into_iter().find(|arg| given(arg.get_id().as_str())) {
                let message = format!("{arg} belongs behind \"{name}\", if that takes it");
                command.clone().error(ErrorKind::ArgumentConflict, message).exit();
            }
        }
        if let Some((name, sub)) = matches.subcommand() {
            let given = |id: &str| sub.value_source(id) == Some(ValueSource::CommandLine);
            let message = match name {
                "report" if given("format") || given("lines") => {
                    "report writes a page, not a --format or --lines; leave that out"
                }
                "tune" if given("glibc") && given("time") => {
                    "tune --glibc takes as long as its rounds do; instead of --time, give --samples"
                }
                _ => "",
            };
            if !message.is_empty() {
                command.clone().error(ErrorKind::ArgumentConflict, message).exit();
            }
        }
        let args = Self::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
        if args.output.lines && args.output.format != Format::Json {
            let message = "--lines is a way to write JSON; add --format json";
            Self::command().error(ErrorKind::ArgumentConflict, message).exit();
        }
        args
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Slots, what serves them and who decided; variants, and why one is not available
    List,
    /// CPU, caches, pages, counters: each fact with its source, then the doubts
    Machine,
    /// Times ways to copy or to clear, side by side, the operation alone
    #[command(before_help = BENCH_EXAMPLES, help_template = TEMPLATE)]
    Bench(Bench),
    /// Operation, later use and bystanders together: up to which use non-temporal is a net gain
    ///
    /// Without the axes' arguments the plan crosses sizes, sources and shares, and departs from the
    /// plainest scenario along one other axis at a time. An axis that is given is crossed with
    /// everything.
    #[command(before_help = MAP_EXAMPLES, help_template = TEMPLATE)]
    Map(Map),
    /// Two results of bench or map, case by case: what became faster, what slower
    #[command(before_help = COMPARE_EXAMPLES, help_template = TEMPLATE)]
    Compare(Compare),
    /// A result of bench or map as one HTML page with pictures, which needs nothing else
    #[command(before_help = REPORT_EXAMPLES, help_template = TEMPLATE)]
    Report(Report),
    /// Measures a policy for this machine and what it costs over the best in each case
    #[command(before_help = TUNE_EXAMPLES, help_template = TEMPLATE)]
    Tune(Tune),
    /// For `tune --glibc`, which starts it under one setting after the other
    #[command(hide = true)]
    LibcTimes(LibcTimes),
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Output {
    /// How the result is written to stdout
    #[arg(long, global = true, value_enum, default_value_t = Format::Table)]
    pub(crate) format: Format,
    /// With --format json: one line per case, each complete by itself
    #[arg(long, global = true)]
    pub(crate) lines: bool,
    /// No progress, notes or warnings on stderr
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
    /// Switches off warnings by their ids
    #[arg(long, global = true, value_name = "ID", value_delimiter = ',')]
    pub(crate) silence: Vec<String>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Quick {
    /// Sizes to try, instead of those of the quick verdict
    #[arg(long, value_name = "SIZE", value_delimiter = ',')]
    pub(crate) size: Vec<Size>,
    #[command(flatten)]
    pub(crate) effort: Effort,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Bench {
    /// What to time
    #[arg(value_enum)]
    pub(crate) operation: Operation,
    /// Lengths of a call: KiB, MiB, GiB, K, M, G or bytes; comma list or repeated
    #[arg(
        long,
        value_name = "SIZE",
        value_delimiter = ',',
        default_value = "64,512,4K,64K,1M,16M"
    )]
    pub(crate) size: Vec<Size>,
    /// Variants by name, or public, public_nontemporal; libc always takes part. Default: all
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(crate) variant: Vec<String>,
    /// The same buffers again, or a range larger than the last-level cache. Default: both
    #[arg(long, value_enum, value_delimiter = ',', default_value = "hot,cold")]
    pub(crate) temperature: Vec<Temperature>,
    /// The order of a cold range's pieces, each touched once per pass
    #[arg(long, value_enum, value_delimiter = ',', default_value = "walk")]
    pub(crate) pattern: Vec<Pattern>,
    /// Bytes off an aligned place: one number for both sides, or DST:SRC; comma list
    #[arg(long, value_name = "BYTES", value_delimiter = ',', default_value = "0")]
    pub(crate) align: Vec<Align>,
    /// Threads at the same time, each in its own range
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: u16,
    /// A routine with memcpy's or memset's signature, timed beside the others
    #[arg(long, value_name = "LIB.so:SYMBOL")]
    pub(crate) peer: Vec<String>,
    #[command(flatten)]
    pub(crate) effort: Effort,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Map {
    /// What to do
    #[arg(value_enum)]
    pub(crate) operation: Operation,
    /// Lengths of a call: KiB, MiB, GiB, K, M, G or bytes. Default: 4 KiB to 16 MiB
    #[arg(long, value_name = "SIZE", value_delimiter = ',')]
    pub(crate) size: Vec<Size>,
    /// Shares of the result used afterwards, of each page its beginning: 0 to 1, or word (per page)
    #[arg(long = "use", value_name = "SHARE", value_delimiter = ',')]
    pub(crate) shares: Vec<Share>,
    /// How it is used: read, write. Default: both
    #[arg(long, value_name = "KIND", value_delimiter = ',')]
    pub(crate) use_kind: Vec<UseKind>,
    /// Bytes read between operation and use. Default: 0, L1, L2, 4 x L2
    #[arg(long, value_name = "SIZE", value_delimiter = ',')]
    pub(crate) delay: Vec<Size>,
    /// Working sets of a bystander. Default: 0, half L1, half L2, L2, 4 x L2
    #[arg(long, value_name = "SIZE", value_delimiter = ',')]
    pub(crate) victim: Vec<Size>,
    /// Its loads: dependent (random order, upper bound), independent (lower). Default: both
    #[arg(long, value_name = "WALK", value_delimiter = ',')]
    pub(crate) walk: Vec<Walk>,
    /// How often it goes through its working set per operation
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) retouch: u32,
    /// Where it runs: same core in turn, other core at the same time
    #[arg(long, value_name = "CORE", value_delimiter = ',', default_value = "same")]
    pub(crate) core: Vec<Core>,
    /// Where a copy's source is. Default: both
    #[arg(long, value_enum, value_delimiter = ',')]
    pub(crate) source: Vec<Temperature>,
    /// Threads at the same time, each with memory and a bystander of its own
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: u16,
    /// Pages of the operation's memory: 4KiB, 2MiB
    #[arg(long, value_name = "PAGE", default_value_t = Page::Base)]
    pub(crate) page: Page,
    /// Variants by name instead of the best few; libc always takes part
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(crate) variant: Vec<String>,
    /// Fewer values on each axis; under a minute
    #[arg(long)]
    pub(crate) quick: bool,
    /// Takes the finished cells of an earlier JSON result and goes on from there
    #[arg(long, value_name = "FILE.json")]
    pub(crate) resume: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) effort: Effort,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Compare {
    /// The result that was first: JSON of bench or map, whole or in lines; - is standard input
    pub(crate) a: PathBuf,
    /// The result that is compared with it
    pub(crate) b: PathBuf,
    /// Ends with 1 if a case takes longer by more than that, with its whole interval (and is worse
    /// at all: below 2 % nothing is)
    #[arg(long, value_name = "worse:PERCENT%")]
    pub(crate) fail_on: Option<FailOn>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Report {
    /// JSON of bench or map, whole or in lines; - is standard input
    pub(crate) file: PathBuf,
    /// Where the page goes. Default: stdout
    #[arg(long, short, value_name = "FILE.html")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Tune {
    /// Writes the profile there; CACHEWISE_PROFILE=FILE or the library's profile module loads it
    #[arg(long, short, value_name = "FILE", conflicts_with_all = ["check", "glibc"])]
    pub(crate) output: Option<PathBuf>,
    /// Fits to the cells of an earlier JSON result of tune instead of measuring; - is standard input
    #[arg(long, value_name = "FILE.json", conflicts_with_all = ["check", "glibc", "size", "quick"])]
    pub(crate) from: Option<PathBuf>,
    /// Measures anew and says whether this profile still holds
    #[arg(long, value_name = "PROFILE", conflicts_with = "glibc")]
    pub(crate) check: Option<PathBuf>,
    /// With --check: ends with 1 if something differs
    #[arg(long, value_enum, value_name = "differs", requires = "check")]
    pub(crate) fail_on: Option<CheckFailOn>,
    /// Looks for libc's tunables that are a gain here, instead of a profile
    #[arg(long)]
    pub(crate) glibc: bool,
    /// Sizes to measure, instead of 256 B to 16 MiB (quick: 1 KiB to 1 MiB)
    #[arg(long, value_name = "SIZE", value_delimiter = ',', conflicts_with = "glibc")]
    pub(crate) size: Vec<Size>,
    /// Fewer sizes and scenarios
    #[arg(long)]
    pub(crate) quick: bool,
    #[command(flatten)]
    pub(crate) effort: Effort,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct LibcTimes {
    #[arg(value_enum)]
    pub(crate) operation: Operation,
    #[arg(long, value_delimiter = ',', required = true)]
    pub(crate) size: Vec<Size>,
    /// The whole step of a map cell instead of the operation alone
    #[arg(long)]
    pub(crate) whole: bool,
    #[command(flatten)]
    pub(crate) effort: Effort,
}

/// Of each contender in each case, unless it is said.
const SAMPLES: u16 = 30;

#[derive(Debug, ClapArgs)]
pub(crate) struct Effort {
    /// Samples per variant and case, if the time suffices. Default: 30, tune 60
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) samples: Option<u16>,
    /// Default: 3 for each case of bench; 45 for the quick verdict; map 1080, quick 52; tune 900, quick 150
    #[arg(long, value_name = "SECONDS")]
    pub(crate) time: Option<Seconds>,
    /// For the order of everything that is shuffled. Default: 1
    #[arg(long, default_value_t = 1, hide_default_value = true)]
    pub(crate) seed: u64,
}

impl Effort {
    pub(crate) fn per_case(&self) -> cachewise_measure::Effort {
        self.or(SAMPLES, 3)
    }

    /// Enough rounds that either half has something to say.
    pub(crate) fn of_verdict(&self) -> cachewise_measure::Effort {
        cachewise_measure::Effort { rounds_min: 4, ..self.or(SAMPLES, 45) }
    }

    /// For the whole map. Its rounds are the survey's own affair; so are tune's.
    pub(crate) fn of_map(&self, quick: bool) -> cachewise_measure::Effort {
        self.or(SAMPLES, if quick { 52 } else { 1080 })
    }

    /// For the whole plan.
    pub(crate) fn of_tune(&self, quick: bool) -> cachewise_measure::Effort {
        self.or(2 * SAMPLES, if quick { 150 } else { 900 })
    }

    fn or(&self, samples: u16, seconds: u64) -> cachewise_measure::Effort {
        cachewise_measure::Effort {
            samples: self.samples.unwrap_or(samples).into(),
            time: self.time.map_or(Duration::from_secs(seconds), |given| given.0),
            rounds_min: 1,
            seed: self.seed,
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Seconds(Duration);

impl std::str::FromStr for Seconds {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse() {
            Ok(seconds) if (0.0..=86400.0).contains(&seconds) => {
                Ok(Self(Duration::from_secs_f64(seconds)))
            }
            _ => Err(format!("\"{text}\" is not a number of seconds from 0 to 86400")),
        }
    }
}

/// `--fail-on`: by which share a case may take longer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct FailOn(pub(crate) f64);

impl std::str::FromStr for FailOn {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let percent = text.strip_prefix("worse:").and_then(|rest| rest.strip_suffix('%'));
        match percent.map(|percent| percent.trim().parse::<f64>()) {
            Some(Ok(percent)) if (0.0..=1000.0).contains(&percent) => Ok(Self(percent / 100.0)),
            _ => Err(format!("\"{text}\" is not worse: with a percentage, such as worse:3%")),
        }
    }
}

/// `tune --check --fail-on`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CheckFailOn {
    /// Another choice saves time that is clear of noise
    Differs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Operation {
    Copy,
    Clear,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Temperature {
    /// The same buffers again and again
    Hot,
    /// A range larger than the last-level cache
    Cold,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Pattern {
    /// One piece after the other
    Walk,
    /// The pieces in random order
    Random,
}

/// `--align`: offsets of destination and source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Align(pub(crate) cachewise_measure::Align);

impl std::str::FromStr for Align {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (dst, src) = text.split_once(':').unwrap_or((text, text));
        let offset = |text: &str| text.parse().ok().filter(|&bytes: &u16| bytes < 4096);
        match (offset(dst), offset(src)) {
            (Some(dst), Some(src)) => {
                Ok(Self(cachewise_measure::Align { dst_bytes: dst.into(), src_bytes: src.into() }))
            }
            _ => Err(format!("\"{text}\" is not a number below 4096, nor two with a colon")),
        }
    }
}

impl From<Operation> for cachewise::variant::Operation {
    fn from(operation: Operation) -> Self {
        match operation {
            Operation::Copy => Self::Copy,
            Operation::Clear => Self::Clear,
        }
    }
}

impl From<Temperature> for cachewise_measure::Temperature {
    fn from(temperature: Temperature) -> Self {
        match temperature {
            Temperature::Hot => Self::Hot,
            Temperature::Cold => Self::Cold,
        }
    }
}

impl From<Pattern> for cachewise_measure::Pattern {
    fn from(pattern: Pattern) -> Self {
        match pattern {
            Pattern::Walk => Self::Walk,
            Pattern::Random => Self::Random,
        }
    }
}
