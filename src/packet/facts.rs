//! This build, by its digests, and the files that go with a packet.

use crate::engine::local::compiled_filter;
use crate::executable;
use crate::image::{Image, built_in};
use crate::packet::error::PacketError;
use crate::packet::template::{check_name, shell};
use crate::random::{RandomError, random_hex};
use crate::sandbox::profile::{Limits as SandboxLimits, Profile};
use crate::sandbox::settings;
use tki_evidence::catalogue::CANONICAL;
use tki_evidence::evidence::Tool;
use tki_evidence::observation::Phase;
use tki_evidence::settings::{Bind, CPU_PERIOD_US, Memory, Settings, memory};
use tki_evidence::stamp::sha256_hex;
use tki_evidence::wire::{Challenge, HostMessage, Limits, PROTOCOL};

/// A file of every Linux host that must not be seen inside.
const HOST_CANARY: &str = "/etc/os-release";

/// The file with limits other than the usual ones.
const LIMITS: &str = "limits.toml";

/// Profiles that `run` knows by name, and their texts.
const BUILT_IN: [(&str, &str); 2] = [
    ("targeted-deny", tki_evidence::TARGETED_DENY),
    ("deny-by-default", tki_evidence::DENY_BY_DEFAULT),
];

/// How long everything may take inside.
const DEADLINE_MS: u32 = 60_000;

/// What a packet is about.
#[derive(Debug)]
pub struct Facts {
    /// This tool.
    pub tool: Tool,
    /// The image.
    pub image: Image,
    /// The sandbox.
    pub profile: Profile,
    /// Its settings, with volumes for /in and /out.
    pub settings: Settings,
    /// The packet's own id, which is in the container's name and label.
    pub id: String,
    /// What the prober is asked when there is no tool to ask it.
    pub challenge: Challenge,
}

impl Facts {
    /// Of this build and a profile, whose file's name stands in every packet.
    pub fn new(profile: Profile) -> Result<Self, PacketError> {
        check_name("the profile's file name", &profile.seccomp.name)?;
        let id = format!("packet-{}", random_hex::<4>()?);
        let binds = vec![
            Bind::of_engine(&format!("tki-attest-{id}"), "/in", true),
            Bind {
                options: memory(Memory {
                    bytes: profile.limits.out_bytes.next_multiple_of(4096),
                    ..profile.limits.out()
                }),
                ..Bind::of_engine("", "/out", false)
            },
        ];
        let settings = settings::settings(&profile, binds, true);
        Ok(Self {
            tool: executable::describe()?,
            image: built_in::image()?,
            settings,
            challenge: challenge(&profile)?,
            profile,
            id,
        })
    }

    /// The challenge as the line that the prober reads, where these invariants
    /// of the sandbox cannot be had.
    pub fn challenge_line(&self, missing: &[&str]) -> Result<String, PacketError> {
        let challenge = Challenge {
            accept_missing: missing.iter().map(|name| (*name).into()).collect(),
            ..self.challenge.clone()
        };
        serde_json::to_string(&HostMessage::Challenge(challenge))
            .map(|line| line + "\n")
            .map_err(PacketError::Challenge)
    }

    /// Everything that plain command lines need, by name.
    pub fn files(&self) -> Result<Vec<(&'static str, Vec<u8>)>, PacketError> {
        let filter = compiled_filter(&self.profile.seccomp.text);
        let filter = filter.map_err(|error| PacketError::Seccomp {
            name: self.profile.seccomp.name.clone(),
            error,
        })?;
        let mut files = vec![
            ("challenge.json", self.challenge_line(&[])?.into_bytes()),
            ("seccomp.bpf", filter),
            (
                "seccomp.json",
                self.profile.seccomp.text.clone().into_bytes(),
            ),
            ("tki-inspector.tar", self.image.archive()),
        ];
        files.extend(self.limits_file());
        Ok(files)
    }

    /// What `run` must be told to use this sandbox, if its files lie in `folder`, as
    /// a shell reads it.
    pub fn run_flags(&self, folder: &str) -> String {
        shell(&self.run_words(folder))
    }

    /// The same as words. A profile of this build is called by its own name, whatever
    /// the file is called that it came from.
    pub fn run_words(&self, folder: &str) -> Vec<String> {
        let seccomp = match self.built_in() {
            Some(name) => name.to_owned(),
            None => format!("{folder}/seccomp.json"),
        };
        let mut words = vec!["--seccomp".to_owned(), seccomp];
        if self.limits_file().is_some() {
            words.push("--profile".into());
            words.push(format!("{folder}/{LIMITS}"));
        }
        words
    }

    /// What `verify` must be told to know this sandbox: a profile that is not of this
    /// build is known to nobody else.
    pub fn verify_words(&self, folder: &str) -> Vec<String> {
        let mut words = vec!["--require-artifacts".to_owned()];
        if self.built_in().is_none() {
            words.push("--seccomp".into());
            words.push(format!("{folder}/seccomp.json"));
        }
        words
    }

    /// The files that [`Self::run_flags`] names.
    pub fn run_files(&self) -> Vec<(&'static str, Vec<u8>)> {
        let profile = self.profile.seccomp.text.clone().into_bytes();
        let built_in = self.built_in().is_some();
        let profile = (!built_in).then_some(("seccomp.json", profile));
        profile.into_iter().chain(self.limits_file()).collect()
    }

    /// The name of the profile, if it is one of this build's.
    fn built_in(&self) -> Option<&'static str> {
        let text = self.profile.seccomp.text.as_str();
        let found = BUILT_IN.iter().find(|(_, known)| *known == text);
        found.map(|(name, _)| *name)
    }

    /// Limits other than the usual ones, as a file for `run --profile`.
    fn limits_file(&self) -> Option<(&'static str, Vec<u8>)> {
        let limits = self.profile.limits;
        let text = format!(
            "[limits]\npids = {}\nmemory_bytes = {}\ncpu_millis = {}\nnofile = {}\nnproc = {}\n\
             out_bytes = {}\ntmp_bytes = {}\nout_files = {}\ntmp_files = {}\n",
            limits.pids,
            limits.memory_bytes,
            limits.cpu_millis,
            limits.nofile,
            limits.nproc,
            limits.out_bytes,
            limits.tmp_bytes,
            limits.out_files,
            limits.tmp_files
        );
        (limits != SandboxLimits::default()).then(|| (LIMITS, text.into_bytes()))
    }
}

/// `sha256sum`'s form, for `sha256sum --check`.
pub fn sums(files: &[(&'static str, Vec<u8>)]) -> String {
    files
        .iter()
        .map(|(name, bytes)| format!("{}  {name}\n", sha256_hex(bytes)))
        .collect()
}

/// The twelve canonical probes, without limits to run into.
fn challenge(profile: &Profile) -> Result<Challenge, RandomError> {
    let positive = |value: i64| u32::try_from(value).unwrap_or(0);
    let limits = &profile.limits;
    Ok(Challenge {
        protocol: PROTOCOL,
        nonce: random_hex::<32>()?,
        probes: CANONICAL.iter().map(|probe| probe.id.into()).collect(),
        phases: vec![Phase::Engine, Phase::Locked],
        probe_deadline_ms: 2_000,
        overall_deadline_ms: DEADLINE_MS,
        lock: true,
        env_canary: "TKI_ATTEST_CANARY".into(),
        host_canary: HOST_CANARY.into(),
        limits: Limits {
            pids: positive(limits.pids),
            memory_bytes: u64::try_from(limits.memory_bytes).unwrap_or(0),
            out_bytes: 0,
            tmp_bytes: limits.tmp_bytes,
            out_files: 0,
            tmp_files: limits.tmp_files,
            nofile: positive(limits.nofile),
            cpu_period_us: positive(CPU_PERIOD_US),
            cpu_quota_us: positive(settings::cpu_quota_us(limits)),
        },
        accept_missing: Vec::new(),
    })
}
