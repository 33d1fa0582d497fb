//! The command line: what may be said, and what is said about it.

use crate::engine::api::endpoint::Wanted;
use crate::engine::api::tls::Files;
use crate::engine::choice::Sought;
use crate::engine::gate::GateChoice;
use crate::image::source::ImageSource;
use crate::report::table::ColorChoice;
use crate::report::verification::VerifyFormat;
use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;
use std::time::Duration;
use values::seconds;

mod inspect;
mod pack;
mod survey;
mod trust;
mod values;

pub use inspect::*;
pub use pack::*;
pub use survey::*;
pub use trust::*;
pub use values::*;

/// Prove, with evidence another party can check, that a sandbox denies by default.
#[derive(Debug, Parser)]
#[command(
    name = "tki-attest",
    version,
    max_term_width = 100,
    after_help = "Exit codes: 0 done or accepted · 1 disproved · 2 usage or unreadable input · \
                  3 BLOCKED, not proven · 4 internal error\n\n\
                  Example: tki-attest run --venue dev && tki-attest verify reports/*.json"
)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
    /// Settings that every command takes.
    #[command(flatten)]
    pub common: Common,
}

impl Cli {
    /// Whether the result is for a program. Then a failure is, too.
    pub fn is_json(&self) -> bool {
        let format = match &self.command {
            Command::Build(args) => args.format,
            Command::Run(args) => args.format,
            Command::Inspect(args) => args.format,
            Command::Verify(args) => return args.format == VerifyFormat::Json,
            Command::Request(args) => args.format,
            Command::Sign(args) => args.format,
            Command::Diff(args) => args.format,
            Command::Keygen(args) => args.format,
            Command::Probes(args) => args.format,
            Command::Seccomp(args) => match &args.command {
                SeccompCommand::Lint(args) | SeccompCommand::Explain(args) => args.format,
                SeccompCommand::Derive(args) => args.format,
            },
            Command::Engines(args) => args.format,
            Command::Survey(args) => args.format,
            Command::Pack(args) => args.format,
            Command::Packet(args) => args.format,
            Command::Clean(args) => args.format,
            // What these print is another program's output, a script or a page.
            Command::Gate(_) | Command::Completions(_) | Command::Man(_) => return false,
        };
        format == Format::Json
    }
}

/// Settings that every command takes.
#[derive(Clone, Copy, Debug, Args)]
pub struct Common {
    /// When to use colour.
    #[arg(
        long,
        value_enum,
        default_value = "auto",
        global = true,
        help_heading = "Output"
    )]
    pub color: ColorChoice,
    /// Say only what went wrong.
    #[arg(short, long, global = true, help_heading = "Output")]
    pub quiet: bool,
    /// Say more: details, reasons, equivalent command lines.
    #[arg(
        short,
        long,
        global = true,
        conflicts_with = "quiet",
        help_heading = "Output"
    )]
    pub verbose: bool,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Build the image from a Dockerfile, reproducibly.
    #[command(after_help = "Example: tki-attest build --layout target/layout --archive image.tar")]
    Build(BuildArgs),
    /// Launch the sandbox, run the probes inside, write evidence.
    #[command(after_help = "Example: tki-attest run --venue vps --out reports\n\n\
                            On another host: tki-attest run --venue vps --host \
                            ssh://operator@vps\nOver TLS: tki-attest run --venue vps --host tcp://vps:2376 --tls-ca ca.pem \
                            --tls-cert cert.pem --tls-key key.pem\n\n\
                            Only a throwaway container, the image tki-inspector:attest, the \
                            output directory and one small file of state (--no-state: not \
                            that) are touched.")]
    Run(RunArgs),
    /// Have the offline inspector read an evidence packet, inside the attested sandbox.
    #[command(
        after_help = "Example: tki-attest inspect --packet packets/june --out reports \
                            --venue vps\n\n\
                            The packet is what `tki-attest pack` made. (`tki-attest packet` writes \
                            instructions for operators, which is something else.) Without \
                            --evidence the sandbox is attested on the spot. The report is triage: it says of each claim what its evidence \
                            comes to, and no command takes it as an input.\n\n\
                            Exits with 10 if the report is written and every claim is adequate, \
                            with 11 if one is not, never with 0."
    )]
    Inspect(InspectArgs),
    /// Decide offline whether evidence proves B4′.
    #[command(after_help = "Example: tki-attest verify \
                            reports/sandbox-attestation-evidence-vps-2026-06-09.json")]
    Verify(VerifyArgs),
    /// Ask for a run: a nonce and what must be used, to be answered in time.
    #[command(
        after_help = "Example: tki-attest request --venue vps --valid-for 24h --out request.json"
    )]
    Request(RequestArgs),
    /// Sign a bundle with an OpenSSH Ed25519 key, or add a signature.
    #[command(after_help = "Example: tki-attest sign \
                            reports/sandbox-attestation-evidence-vps-2026-06-09.json --key operator_key")]
    Sign(SignArgs),
    /// Run a command only if a bundle is accepted.
    #[command(
        after_help = "Example: tki-attest gate reports/evidence.json --allowed-signers \
                            signers --require-assurance signed -- ./start-inspector"
    )]
    Gate(GateArgs),
    /// Show what changed between two runs.
    #[command(after_help = "Example: tki-attest diff reports/yesterday.json reports/today.json")]
    Diff(DiffArgs),
    /// Make an OpenSSH Ed25519 key pair for signing.
    #[command(after_help = "Example: tki-attest keygen --out operator_key --comment operator@vps")]
    Keygen(KeygenArgs),
    /// Print a completion script for a shell.
    #[command(
        after_help = "Example: tki-attest completions bash > /etc/bash_completion.d/tki-attest"
    )]
    Completions(CompletionsArgs),
    /// Print the manual page, or write one page per command.
    #[command(after_help = "Example: tki-attest man --out man1")]
    Man(ManArgs),
    /// List the probes: what each does, what must come back, and why.
    #[command(after_help = "Example: tki-attest probes --format json | jq '.[].probe_id'")]
    Probes(ProbesArgs),
    /// Look at a seccomp profile: find mistakes, explain it, find the smallest one.
    #[command(after_help = "Example: tki-attest seccomp lint seccomp/targeted-deny.json")]
    Seccomp(SeccompArgs),
    /// List the engines of this host: what each can do, and what it would give up.
    #[command(
        after_help = "Example: tki-attest engines --try-gate\n\nOn another host: \
                            tki-attest engines --host ssh://operator@vps"
    )]
    Engines(EnginesArgs),
    /// Find out, by trying, what can run the sandbox here, or which routes can write.
    #[command(after_help = "Example: tki-attest survey --packet packet.md\n\n\
                            On each engine of this host a container is created from our own \
                            image, never started, and removed; containers, networks, volumes \
                            and images of others are counted at most. With --read-only nothing \
                            is made at all. With --routes nothing is changed on a route that \
                            --allow-writes does not name.\n\n\
                            Exits with 0 if something can be used, with 3 if nothing can.")]
    Survey(SurveyArgs),
    /// Make an evidence packet for the inspector from a directory of files and claims.
    #[command(
        after_help = "Example: tki-attest pack --init facts && tki-attest pack facts && \
                            tki-attest pack --check facts-packet\n\n\
                            Digests, sizes, media types and the lines of quotes are filled in. \
                            Nothing is judged, no engine is asked, and nothing that is there is \
                            replaced.\n\n\
                            Other packing: `packet` writes instructions for the next operator, \
                            who runs the sandbox elsewhere; `build` packs an image. What `run` \
                            writes is a bundle; a packet may hold bundles among its items."
    )]
    Pack(PackArgs),
    /// Write what another operator needs to run it: a packet, a workflow, manifests.
    #[command(
        after_help = "Example: tki-attest packet --for operator --out packet.md\n\n\
                            Nothing is run, and no engine is asked: it is complete for this \
                            build, with digests of image, profile and tool.\n\n\
                            It holds instructions for a person. An evidence packet, which holds \
                            files and claims for the inspector, is made by `pack`."
    )]
    Packet(PacketArgs),
    /// Remove what an interrupted run left behind, and nothing else.
    #[command(after_help = "Example: tki-attest clean --dry-run\n\n\
                            Containers are found by the label dev.tki.attest.run, and removed \
                            if everything else about them is ours, too; what an engine that was \
                            killed has forgotten is found by the run's name and image.")]
    Clean(CleanArgs),
}

/// Where the image comes from.
#[derive(Debug, Args)]
pub struct ImageArgs {
    /// Dockerfile to build from [default: the one built into this tool].
    #[arg(long, value_name = "FILE", requires = "context")]
    pub file: Option<PathBuf>,
    /// Directory that COPY takes files from [default: the files built into this tool].
    #[arg(long, value_name = "DIR", requires = "file")]
    pub context: Option<PathBuf>,
    /// Base image for `FROM NAME`, as an OCI layout on disk.
    #[arg(long, value_name = "NAME=oci-layout://DIR")]
    pub build_context: Vec<String>,
}

impl ImageArgs {
    /// The same for the image's side.
    pub fn source(&self) -> ImageSource {
        ImageSource {
            files: self.file.clone().zip(self.context.clone()),
            bases: self.build_context.clone(),
        }
    }
}

/// Arguments of `build`.
#[derive(Debug, Args)]
pub struct BuildArgs {
    /// Where the image comes from.
    #[command(flatten)]
    pub source: ImageArgs,
    /// Name and tag of the image.
    #[arg(long, default_value = crate::image::built_in::TAG)]
    pub tag: String,
    /// Write an OCI layout into this directory.
    #[arg(long, value_name = "DIR")]
    pub layout: Option<PathBuf>,
    /// Write an archive that docker, podman, skopeo and umoci read.
    #[arg(long, value_name = "FILE")]
    pub archive: Option<PathBuf>,
    /// Load the image into the engine.
    #[arg(long)]
    pub load: bool,
    /// Which engine, for --load.
    #[command(flatten)]
    pub engine: EngineArgs,
    /// How the result is printed.
    #[arg(long, value_enum, default_value = "text")]
    pub format: Format,
}

/// Which engine.
#[derive(Clone, Debug, Args)]
pub struct EngineArgs {
    /// The container engine.
    #[arg(long, value_enum, default_value = "auto")]
    pub engine: EngineName,
    /// Where it is.
    #[command(flatten)]
    pub at: HostArgs,
    /// Time limit for everything.
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = seconds)]
    pub timeout: Duration,
}

/// Where the engine is.
#[derive(Clone, Debug, Default, Args)]
pub struct HostArgs {
    /// Its address: unix:///path, ssh://[user@]host[:port][/path] or tcp://host[:port]
    /// [default: DOCKER_HOST, then DOCKER_CONTEXT or the Docker context in use; for Podman
    /// CONTAINER_HOST; then the usual sockets].
    #[arg(long, value_name = "URL")]
    pub host: Option<String>,
    /// The authority that signed the engine's certificate, in PEM; makes tcp:// speak TLS
    /// [default: ca.pem in DOCKER_CERT_PATH].
    #[arg(long, value_name = "FILE")]
    pub tls_ca: Option<PathBuf>,
    /// Our own certificate, in PEM.
    #[arg(long, value_name = "FILE", requires_all = ["tls_ca", "tls_key"])]
    pub tls_cert: Option<PathBuf>,
    /// The key to it, in PEM, which nobody else may read.
    #[arg(long, value_name = "FILE", requires_all = ["tls_ca", "tls_cert"])]
    pub tls_key: Option<PathBuf>,
    /// ssh's configuration for an ssh:// address, instead of the user's own.
    #[arg(long, value_name = "FILE")]
    pub ssh_config: Option<PathBuf>,
}

impl EngineArgs {
    /// The same for the engine's side.
    pub fn sought(&self) -> Sought {
        Sought {
            choice: self.engine.choice(),
            at: self.at.wanted(),
            timeout: self.timeout,
        }
    }
}

impl HostArgs {
    /// The same for the engine's side.
    pub fn wanted(&self) -> Wanted {
        Wanted {
            host: self.host.clone(),
            tls: Files {
                ca: self.tls_ca.clone(),
                cert: self.tls_cert.clone(),
                key: self.tls_key.clone(),
                only_ours: false,
            },
            ssh_config: self.ssh_config.clone(),
        }
    }
}

/// The sandbox, and how it is launched.
#[derive(Debug, Args)]
pub struct SandboxArgs {
    /// Seccomp profile: targeted-deny, deny-by-default, or a file in Docker's JSON form.
    #[arg(long, value_name = "PROFILE", default_value = "deny-by-default")]
    pub seccomp: String,
    /// Limits of the sandbox, as a TOML file.
    #[arg(long, value_name = "FILE")]
    pub profile: Option<PathBuf>,
    /// The OCI runtime that Docker or Podman should use [default: the engine's own].
    #[arg(long, value_name = "NAME")]
    pub runtime: Option<String>,
    /// The exec gate: a supervisor that lets exactly the first exec through.
    #[arg(long, value_enum, default_value = "auto")]
    pub gate: GateChoice,
    /// Neither read nor write what runs remember: which engines refused the exec gate.
    #[arg(long)]
    pub no_state: bool,
}

/// Arguments of `run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// Where this is: a claim that goes into the evidence and is checked against facts.
    #[arg(long, value_enum)]
    pub venue: Venue,
    /// Other rules on what makes a venue implausible, as a TOML file.
    #[arg(long, value_name = "FILE")]
    pub venue_rules: Option<PathBuf>,
    /// What the platform (a cloud, a CI system) signed about this place: kept, not checked.
    #[arg(long, value_name = "FILE")]
    pub platform_proof: Option<PathBuf>,
    /// What the hardware (a TPM) signed about this place: kept, not checked.
    #[arg(long, value_name = "FILE")]
    pub hardware_proof: Option<PathBuf>,
    /// Which engine.
    #[command(flatten)]
    pub engine: EngineArgs,
    /// Control runs, in which a boundary is relaxed so that its probe must flip
    /// [default: safe for vps and ci, none for dev].
    #[arg(long, value_enum)]
    pub controls: Option<Controls>,
    /// The sandbox.
    #[command(flatten)]
    pub sandbox: SandboxArgs,
    /// The verifying party's request; its nonce goes through the container.
    #[arg(long, value_name = "FILE")]
    pub request: Option<PathBuf>,
    /// Sign the evidence with this OpenSSH Ed25519 key.
    #[arg(long, value_name = "KEY")]
    pub sign: Option<PathBuf>,
    /// Where the key's passphrase comes from.
    #[command(flatten)]
    pub passphrase: PassphraseArgs,
    /// Directory for the evidence.
    #[arg(long, value_name = "DIR", default_value = "reports")]
    pub out: PathBuf,
    /// If the run is BLOCKED, write the operator's packet here.
    #[arg(long, value_name = "FILE")]
    pub packet: Option<PathBuf>,
    /// Where the image comes from.
    #[command(flatten)]
    pub source: ImageArgs,
    /// How the result is printed.
    #[arg(long, value_enum, default_value = "text")]
    pub format: Format,
}

/// Arguments of `probes`.
#[derive(Debug, Args)]
pub struct ProbesArgs {
    /// How the result is printed.
    #[arg(long, value_enum, default_value = "text")]
    pub format: Format,
}

/// Arguments of `seccomp`.
#[derive(Debug, Args)]
pub struct SeccompArgs {
    /// What to do with the profile.
    #[command(subcommand)]
    pub command: SeccompCommand,
}

/// What to do with a profile.
#[derive(Debug, Subcommand)]
pub enum SeccompCommand {
    /// Find mistakes and ways past a profile; exit 1 if there is one.
    #[command(after_help = "Example: tki-attest seccomp lint my-profile.json")]
    Lint(ProfileArgs),
    /// Say what a profile allows and why, in groups.
    #[command(after_help = "Example: tki-attest seccomp explain -v deny-by-default")]
    Explain(ProfileArgs),
    /// Find the smallest allow-list under which every probe still passes, by running it.
    #[command(after_help = "Example: tki-attest seccomp derive --from deny-by-default")]
    Derive(DeriveArgs),
}

/// A profile to read.
#[derive(Debug, Args)]
pub struct ProfileArgs {
    /// targeted-deny, deny-by-default, or a file in Docker's JSON form.
    #[arg(value_name = "PROFILE")]
    pub profile: String,
    /// How the result is printed.
    #[arg(long, value_enum, default_value = "text")]
    pub format: Format,
}

/// Arguments of `seccomp derive`.
#[derive(Debug, Args)]
pub struct DeriveArgs {
    /// The allow-list to start from.
    #[arg(long, value_name = "PROFILE", default_value = "deny-by-default")]
    pub from: String,
    /// Which engine.
    #[command(flatten)]
    pub engine: EngineArgs,
    /// How the result is printed.
    #[arg(long, value_enum, default_value = "text")]
    pub format: Format,
}

/// Arguments of `engines`.
#[derive(Debug, Args)]
pub struct EnginesArgs {
    /// Launch a container on each, to find out whether it takes an exec gate.
    #[arg(long)]
    pub try_gate: bool,
    /// Neither read nor write what runs remember: which engines refused the exec gate.
    #[arg(long)]
    pub no_state: bool,
    /// Look at the engine that is there, and at no other.
    #[command(flatten)]
    pub at: HostArgs,
    /// Time limit for each engine.
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = seconds)]
    pub timeout: Duration,
    /// How the result is printed.
    #[arg(long, value_enum, default_value = "text")]
    pub format: Format,
}

/// Arguments of `clean`.
#[derive(Debug, Args)]
pub struct CleanArgs {
    /// Only say what would be removed.
    #[arg(long)]
    pub dry_run: bool,
    /// Also remove containers of runs whose time limit has not passed yet.
    #[arg(long)]
    pub force: bool,
    /// Which engine.
    #[command(flatten)]
    pub engine: EngineArgs,
    /// How the result is printed.
    #[arg(long, value_enum, default_value = "text")]
    pub format: Format,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_well_formed_and_every_command_has_an_example() {
        let command = Cli::command();
        command.clone().debug_assert();
        for sub in command.get_subcommands() {
            let help = sub
                .get_after_help()
                .map(ToString::to_string)
                .unwrap_or_default();
            assert!(help.contains("Example: tki-attest"), "{}", sub.get_name());
        }
    }
}
