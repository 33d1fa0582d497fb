//! What controls show: whether each of them holds, and what the probes that
//! failed there stand on.

use crate::controls::{self, Control};
use crate::engine_kind::EngineKind;
use crate::evidence::{ChangedSetting, ControlResult, ProbeResult, RawFacts, Verdict};
use crate::judge::{self, Sweeps, Texts};
use crate::kernel::{self, KernelKind, Own};
use crate::relaxation::{self, Names, Relaxation, SAME};
use crate::settings::{self, BindKind, Settings};
use crate::transcript::Heard;
use alloc::borrow::Cow;
use alloc::borrow::ToOwned;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;
use alloc::{format, vec};

/// What the controls show about each probe: which of them made it fail, which
/// layers stand between it and success, and how many of them at least had to go.
/// A control that does not hold shows nothing. Gives the controls as they follow.
pub fn calibrate<'a>(
    probes: &mut [ProbeResult],
    controls: &'a [ControlResult],
    run: &Comparable,
) -> Vec<Cow<'a, ControlResult>> {
    let mut times: BTreeMap<&str, u32> = BTreeMap::new();
    let restated = |said: &'a ControlResult| {
        let times = times.entry(&said.control).or_default();
        *times += 1;
        match (*times > MOST_TIMES, said.holds) {
            (false, _) => restated(said, run),
            (true, false) => Cow::Borrowed(said),
            (true, true) => Cow::Owned(ControlResult {
                holds: false,
                ..said.clone()
            }),
        }
    };
    let controls: Vec<_> = controls.iter().map(restated).collect();
    let flipped = flipped_by(&controls);
    for probe in probes {
        let flipping = flipped.get(probe.probe_id.as_str());
        let flipping = flipping.filter(|_| !run.has_failed(&probe.probe_id));
        let flipping = flipping.map_or(&[][..], Vec::as_slice);
        // A set of layers that holds a smaller one shows nothing more than it.
        let within = |small: &[String], large: &[String]| {
            small.len() < large.len() && small.iter().all(|layer| large.contains(layer))
        };
        let smallest = flipping.iter().map(|control| control.layers.len()).min();
        let mut layers: Vec<String> = flipping
            .iter()
            .filter(|one| {
                !flipping
                    .iter()
                    .any(|other| within(&other.layers, &one.layers))
            })
            .flat_map(|control| control.layers.iter().cloned())
            .collect();
        layers.sort();
        layers.dedup();
        probe.calibrated_by = flipping.iter().map(|c| c.control.clone()).collect();
        probe.denied_by = layers;
        probe.layers = u32::try_from(smallest.unwrap_or(0)).unwrap_or(u32::MAX);
    }
    controls
}

/// How often a control is looked at that is named again and again: each has a
/// conversation of its own, and no run has two of one name.
const MOST_TIMES: u32 = 2;

/// The controls that hold, by the probes that they flipped.
fn flipped_by<'a>(controls: &'a [Cow<ControlResult>]) -> BTreeMap<&'a str, Vec<&'a ControlResult>> {
    let mut flipped: BTreeMap<&str, Vec<&ControlResult>> = BTreeMap::new();
    for control in controls.iter().filter(|control| control.holds) {
        let probes: BTreeSet<&str> = control.flipped.iter().map(String::as_str).collect();
        for probe in probes {
            flipped.entry(probe).or_default().push(control);
        }
    }
    flipped
}

/// A control as it follows from what was recorded of it, and from what it is: what
/// must flip is ours to say, not the bundle's.
fn restated<'a>(said: &'a ControlResult, run: &Comparable) -> Cow<'a, ControlResult> {
    let mut control = Cow::Borrowed(said);
    if let Some(known) = controls::find(&said.control) {
        if said.relaxed != known.relaxed {
            control.to_mut().relaxed = known.relaxed.to_owned();
        }
        if said.instrument != known.instrument {
            control.to_mut().instrument = known.instrument;
        }
        type Field = fn(&mut ControlResult) -> &mut Vec<String>;
        let fields: [(&[String], &[&str], Field); 4] = [
            (&said.layers, known.layers, |c| &mut c.layers),
            (&said.must_flip, known.must_flip, |c| &mut c.must_flip),
            (&said.may_flip, known.may_flip, |c| &mut c.may_flip),
            (&said.blinds, known.blinds, |c| &mut c.blinds),
        ];
        for (list, names, field) in fields {
            if list != names {
                *field(control.to_mut()) = names.iter().map(|name| (*name).to_owned()).collect();
            }
        }
        let probes = controls::probes(known).map(|probe| probe.id);
        if !said.probes.iter().eq(probes.clone()) {
            control.to_mut().probes = probes.map(str::to_owned).collect();
        }
    }
    let holds = control_problems(&control, run).is_empty();
    if said.holds != holds {
        control.to_mut().holds = holds;
    }
    control
}

/// Controls that an engine can run for a container with these settings: a limit
/// that is not there cannot be relaxed, and not every engine can relax all.
pub fn applicable(
    engine: Option<EngineKind>,
    run: &Settings,
    kernel: KernelKind,
) -> Vec<&'static Control> {
    let can = |control: &&Control| {
        if kernel::impossible(control, run, kernel).is_some() {
            return false;
        }
        // Without a quota there are no counters, and so no group to be shown.
        let of_quota =
            |one: &Relaxation| matches!(one, Relaxation::CpuQuota | Relaxation::CgroupWritable);
        let no_quota = run.cpu_quota_us == 0 && control.relaxations.iter().any(of_quota);
        // Root of a user's own Podman is that user on the host, whose other
        // processes count against a limit that stands in for the group's.
        let no_room = engine == Some(EngineKind::Podman)
            && run.pids_limit == 0
            && control.relaxations.contains(&Relaxation::RootUser);
        // Where the launcher makes /in and /out there is no neighbour to join. Interfaces it
        // makes as well.
        let joins = |one: &Relaxation| matches!(one, Relaxation::JoinIpc | Relaxation::JoinPid);
        let no_neighbour =
            relaxation::volume(run).is_none() && control.relaxations.iter().any(joins);
        let no_label = takes_label(control) && !has_label(run);
        !no_quota && !no_room && !no_neighbour && !no_label
    };
    controls::of_engine(engine).filter(can).collect()
}

/// It takes the label of a security module away.
pub fn takes_label(control: &Control) -> bool {
    control.relaxations.contains(&Relaxation::Unconfined)
}

/// A label was given that can be taken away: one of AppArmor's. How SELinux's is, is not
/// known here.
pub fn has_label(run: &Settings) -> bool {
    !["", "unconfined"].contains(&run.lsm.as_str()) && !run.lsm.contains(':')
}

/// A run's own settings, in the form in which a control's are compared with them.
#[derive(Clone, Debug)]
pub struct Comparable {
    settings: Settings,
    /// What did not pass in the run itself, on a kernel of its own.
    before: Option<Before>,
}

/// Probes that did not pass in the run itself.
#[derive(Clone, Debug, Default)]
struct Before {
    failed: BTreeSet<String>,
    unproven: BTreeSet<String>,
}

/// What a control showed by what flipped in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shown {
    /// What it should.
    This,
    /// Nothing that the run did not show, too.
    Nothing,
    /// Something else.
    Other,
}

impl Before {
    /// On a kernel of its own boundaries may be missing in the run itself, and others be
    /// kept by the kernel without a filter. There a control shows something of the probes
    /// that passed in the run and fail in it, and of no others.
    fn shown(&self, control: &Control, result: &ControlResult) -> Shown {
        let concerned = |probe: &String| control.concerns(probe);
        let new = || {
            let flipped = result.flipped.iter();
            flipped.filter(|probe| !self.failed.contains(*probe))
        };
        let may_be_unproven = |probe: &String| {
            self.unproven.contains(probe)
                || self.failed.contains(probe)
                || concerned(probe)
                || control.blinds.contains(&probe.as_str())
                || kernel::blinds(control.name, probe)
        };
        match new().all(concerned) && result.unproven.iter().all(may_be_unproven) {
            false => Shown::Other,
            true if control.must_flip.is_empty() || new().next().is_some() => Shown::This,
            true => Shown::Nothing,
        }
    }
}

impl Comparable {
    /// The same for a run on a kernel of this kind, with these results.
    pub fn on(self, kernel: KernelKind, probes: &[ProbeResult]) -> Self {
        let of = |verdict: Verdict| -> BTreeSet<String> {
            let matching = probes.iter().filter(|probe| probe.verdict == verdict);
            matching.map(|probe| probe.probe_id.clone()).collect()
        };
        let before = kernel.is_own().then(|| Before {
            failed: of(Verdict::Fail),
            unproven: of(Verdict::Unproven),
        });
        Self { before, ..self }
    }

    /// A probe came to FAIL in the run itself, and so shows nothing in a control.
    fn has_failed(&self, probe: &str) -> bool {
        let before = self.before.as_ref();
        before.is_some_and(|before| before.failed.contains(probe))
    }

    fn shown(&self, control: &Control, result: &ControlResult) -> Shown {
        match &self.before {
            Some(before) => before.shown(control, result),
            None if control.flips(&result.flipped, &result.unproven) => Shown::This,
            None => Shown::Other,
        }
    }

    /// The settings of a run, as the engine reported them.
    pub fn of(run: &Settings) -> Self {
        let input = run.binds.iter().find(|bind| bind.target == "/in");
        let scratch = input.and_then(|bind| match bind.kind {
            BindKind::Bind => bind.source.strip_suffix("/in"),
            BindKind::Volume => Some(bind.source.as_str()),
        });
        let names = Names {
            scratch: scratch.unwrap_or(SAME.scratch),
            ..SAME
        };
        Self {
            settings: relaxation::comparable(run.clone(), names),
            before: None,
        }
    }
}

/// Why a control does not hold, one line each: what flipped or could not be
/// tried, and settings that changed without being what it relaxes.
pub fn control_problems(result: &ControlResult, run: &Comparable) -> Vec<String> {
    let Some(control) = controls::find(&result.control) else {
        return vec!["no such control".into()];
    };
    let mut problems = Vec::new();
    let shown = run.shown(control, result);
    if shown == Shown::Other {
        problems.push(format!(
            "flipped {} instead of {}{}",
            named(&result.flipped),
            named(control.must_flip),
            match result.unproven.as_slice() {
                [] => String::new(),
                unproven => format!(", unproven {}", named(unproven)),
            }
        ));
    }
    let expected = expected_changes(control, run);
    for found in result.changed.iter().filter(|c| !expected.contains(c)) {
        problems.push(format!(
            "{} was changed from {} to {}",
            found.setting, found.run, found.control
        ));
    }
    for missing in expected.iter().filter(|c| !result.changed.contains(c)) {
        problems.push(format!(
            "{} was not changed from {} to {}",
            missing.setting, missing.run, missing.control
        ));
    }
    if problems.is_empty() && result.changed != expected {
        problems.push("changed settings are named twice or in another order".into());
    }
    if is_blind(control, result) || shown == Shown::Nothing {
        problems.push("it shows nothing".into());
    }
    problems
}

/// None of the few probes that a control is run for could tell anything.
fn is_blind(control: &Control, result: &ControlResult) -> bool {
    let told = |probe: &&str| !result.unproven.iter().any(|own| own == probe);
    !control.only.is_empty() && !control.only.iter().any(told)
}

/// The one thing that is wrong with a control is that it shows nothing. It does not hold
/// then, and nothing rests on it: what it would have shown is in `not_proven`.
pub fn only_shows_nothing(result: &ControlResult, run: &Comparable) -> bool {
    let silent = |known| is_blind(known, result) || run.shown(known, result) == Shown::Nothing;
    controls::find(&result.control).is_some_and(silent) && control_problems(result, run).len() == 1
}

fn named(probes: &[impl AsRef<str>]) -> String {
    let names: Vec<&str> = probes.iter().map(AsRef::as_ref).collect();
    match names.as_slice() {
        [] => "nothing".into(),
        names => names.join(" "),
    }
}

/// The settings in which a control's container differs from the run's own, as
/// the engine reported both.
pub fn changed(run: &Settings, control: &Settings, names: Names) -> Vec<ChangedSetting> {
    differences(
        &Comparable::of(run).settings,
        &relaxation::comparable(control.clone(), names),
    )
}

/// The same as it should be: the control's relaxations and nothing else.
fn expected_changes(control: &Control, run: &Comparable) -> Vec<ChangedSetting> {
    let run = &run.settings;
    let mut relaxed = run.clone();
    for relaxation in control.relaxations {
        relaxation::relax(*relaxation, &mut relaxed, SAME);
    }
    differences(run, &relaxation::comparable(relaxed, SAME))
}

fn differences(run: &Settings, control: &Settings) -> Vec<ChangedSetting> {
    settings::deviations(run, control)
        .into_iter()
        .map(|found| ChangedSetting {
            setting: found.setting,
            run: found.declared,
            control: found.configured,
        })
        .collect()
}

/// What the probes of a control came to, as far as they did not pass.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NotPassed {
    /// Probes that came to FAIL, sorted.
    pub flipped: Vec<String>,
    /// Probes that came to UNPROVEN, sorted.
    pub unproven: Vec<String>,
}

/// The kernel texts of a control, with the profile that stood there: `plain` is the
/// run's, without a gate, `label` what the engine says it gave the run's container, and `own`
/// the run's kernel, if it is not the host's.
pub fn texts<'a>(
    control: &Control,
    heard: &'a Heard,
    run: &'a RawFacts,
    label: &'a str,
    plain: &'a str,
    sweeps: &'a Sweeps,
    own: Option<Own<'a>>,
) -> Texts<'a> {
    let profile = control.profile().unwrap_or(plain);
    let mut texts = Texts::new(&heard.raw, run, profile, sweeps).on(own);
    // Only then is it known to run beside the neighbour.
    if control.relaxations.iter().any(|one| one.joins().is_some()) {
        texts.neighbour_namespaces = &run.neighbour_namespaces;
    }
    texts.label = label;
    texts.marked = control.relaxations.contains(&controls::Relaxation::Marks);
    texts
}

/// Judges the probes of a control by the same rules as those of the run itself.
pub fn not_passed(control: &Control, heard: &Heard, texts: &Texts) -> NotPassed {
    let mut by_probe = heard.by_probe();
    let (mut found, mut seen) = (NotPassed::default(), Vec::new());
    for probe in controls::probes(control) {
        seen.clear();
        seen.extend(by_probe.of(probe.id));
        match judge::verdict(probe, &seen, texts) {
            Verdict::Pass => {}
            Verdict::Fail => found.flipped.push(probe.id.to_owned()),
            Verdict::Unproven => found.unproven.push(probe.id.to_owned()),
        }
    }
    found.flipped.sort();
    found.unproven.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue;
    use crate::controls::CONTROLS;
    use crate::settings::{Bind, Tmpfs, Ulimit};

    fn run_settings(scratch: &str) -> Settings {
        let bind =
            |name: &str, read_only| Bind::of_host(&format!("{scratch}{name}"), name, read_only);
        let text = String::from;
        Settings {
            network: text("none"),
            ipc: text("none"),
            pid: text("private"),
            uts: text("private"),
            userns: text("default"),
            cgroupns: text("private"),
            hostname: text("sandbox"),
            privileged: false,
            read_only_rootfs: true,
            user: text("7:7"),
            env: Vec::new(),
            binds: vec![bind("/in", true), bind("/out", false)],
            tmpfs: vec![Tmpfs {
                target: text("/tmp"),
                options: text("rw,noexec,size=1024,mode=1777"),
            }],
            cap_add: Vec::new(),
            cap_drop: vec![text("ALL")],
            no_new_privileges: true,
            seccomp: "0".repeat(64),
            security_options: Vec::new(),
            system_paths_masked: true,
            covered_texts: Vec::new(),
            lsm: text("docker-default"),
            working_directory: text("/"),
            devices: Vec::new(),
            pids_limit: 8,
            memory_bytes: 1024,
            memory_swap_bytes: 0,
            cpu_period_us: 2000,
            cpu_quota_us: 3000,
            ulimits: vec![Ulimit {
                name: text("nofile"),
                soft: 64,
                hard: 64,
            }],
            auto_remove: true,
            log_driver: text("none"),
        }
    }

    const NAMES: Names = Names {
        neighbour: "5a",
        scratch: "/run/b",
        variable: "TKI_CANARY_7",
        file: "/opt/tool",
        marked: "1234",
    };

    /// A control whose only probe told nothing does not hold, and breaks nothing; with
    /// anything else wrong it does.
    #[test]
    fn a_control_that_shows_nothing_does_not_hold() {
        let run = Comparable::of(&run_settings("/run/a"));
        let marks = controls::find("marks").unwrap();
        let good = result_of(marks, |_| {});
        assert!(control_problems(&good, &run).is_empty());
        assert!(!only_shows_nothing(&good, &run));
        let silent = ControlResult {
            unproven: vec!["XP-ABI-SWEEP".into()],
            ..good
        };
        assert_eq!(control_problems(&silent, &run), ["it shows nothing"]);
        assert!(only_shows_nothing(&silent, &run));
        let other = ControlResult {
            changed: Vec::new(),
            ..silent
        };
        assert!(!only_shows_nothing(&other, &run));
    }

    /// What a launcher that does as it should would record.
    fn result_of(control: &Control, change: impl Fn(&mut Settings)) -> ControlResult {
        let list = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect();
        let mut there = run_settings(NAMES.scratch);
        for relaxation in control.relaxations {
            relaxation::relax(*relaxation, &mut there, NAMES);
        }
        // The engine's own order and spelling.
        there.binds.reverse();
        for capability in &mut there.cap_add {
            capability.insert_str(0, "CAP_");
        }
        change(&mut there);
        ControlResult {
            control: control.name.into(),
            relaxed: String::new(),
            layers: Vec::new(),
            instrument: false,
            probes: Vec::new(),
            must_flip: Vec::new(),
            may_flip: Vec::new(),
            blinds: Vec::new(),
            flipped: list(control.must_flip),
            // One that is run for a few probes alone has told something by them.
            unproven: match control.only {
                [] => list(control.blinds),
                _ => Vec::new(),
            },
            changed: changed(&run_settings("/run/a"), &there, NAMES),
            holds: false,
            artifact_path: String::new(),
        }
    }

    /// Each time a control is looked at, the settings of the run are.
    #[test]
    fn a_control_that_is_named_again_and_again_shows_nothing() {
        let held = crate::sizes::ends(|| {
            let said = result_of(&CONTROLS[0], |_| ());
            let mut run = run_settings("/run/a");
            run.env = crate::sizes::names(100_000);
            let controls = vec![said; 20_000];
            let controls = calibrate(&mut [], &controls, &Comparable::of(&run));
            controls.iter().filter(|control| control.holds).count()
        });
        assert!(held <= 2, "{held}");
    }

    #[test]
    fn every_control_holds_with_its_relaxations_and_with_nothing_else() {
        let run = run_settings("/run/a");
        type Hidden = fn(&mut Settings);
        let hidden: &[Hidden] = &[
            |s| s.privileged = true,
            |s| s.network = "host".into(),
            |s| s.auto_remove = false,
            |s| s.cap_drop.clear(),
            |s| s.cap_add.push("SYS_ADMIN".into()),
            |s| s.env.push("SECRET".into()),
            |s| s.devices.push("/dev/sda:/dev/sda".into()),
            |s| s.pids_limit += 1,
            |s| {
                let socket = "/run/docker.sock";
                s.binds.push(Bind::of_host(socket, socket, false));
            },
        ];
        for control in CONTROLS {
            let result = result_of(control, |_| {});
            assert_eq!(
                control_problems(&result, &Comparable::of(&run)),
                [""; 0],
                "{}",
                control.name
            );
            for (index, hidden) in hidden.iter().enumerate() {
                let result = result_of(control, hidden);
                let problems = control_problems(&result, &Comparable::of(&run));
                assert!(!problems.is_empty(), "{}: {index}", control.name);
            }
            let mut silent = result.clone();
            silent.changed.clear();
            let relaxes_a_setting = !result.changed.is_empty();
            let found = control_problems(&silent, &Comparable::of(&run));
            assert_eq!(!found.is_empty(), relaxes_a_setting, "{}", control.name);
        }
    }

    /// Where a host's names come from must not matter, and nothing else of the
    /// run may be taken for a change.
    #[test]
    fn names_of_the_run_are_no_change() {
        let host_file = controls::find("host-file").unwrap();
        let found = result_of(host_file, |_| {}).changed;
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].setting, "binds");
        assert!(found[0].control.contains("\"SCRATCH/in\""), "{found:?}");
        assert!(found[0].control.contains("\"CANARY\""), "{found:?}");
        assert!(!found[0].control.contains("/opt/tool"), "{found:?}");
        let lock = controls::find("lock").unwrap();
        assert_eq!(result_of(lock, |_| {}).changed, []);
    }

    #[test]
    fn layers_are_the_smallest_sets_that_had_to_go() {
        let run = run_settings("/run/a");
        let probe = |id: &str| {
            let spec = catalogue::find(id).unwrap();
            let matrix = crate::matrix::Matrix::rev4();
            let (raw, sweeps) = (RawFacts::default(), Sweeps::default());
            let texts = Texts::of_run(&raw, &sweeps);
            crate::derive::probe_result(spec, Vec::new(), &texts, &matrix, String::new())
        };
        let mut probes = [
            "PR-NET-1",
            "PR-NET-2",
            "PR-EXEC-1",
            "XP-ABI-X32",
            "XP-ID-THREADS",
        ]
        .map(probe);
        let mut results: Vec<ControlResult> =
            CONTROLS.iter().map(|c| result_of(c, |_| {})).collect();
        let shown_again = calibrate(&mut probes, &results, &Comparable::of(&run));
        assert!(shown_again.iter().all(|result| result.holds));
        let shown = |probe: &ProbeResult| {
            let by = probe.calibrated_by.join(" ");
            (by, probe.denied_by.join(" "), probe.layers)
        };
        let row = |by: &str, denied: &str, layers| (by.to_owned(), denied.to_owned(), layers);
        assert_eq!(
            shown(&probes[0]),
            row("seccomp seccomp-network", "seccomp", 1)
        );
        assert_eq!(
            shown(&probes[1]),
            row("seccomp-network network", "namespace", 1)
        );
        // What is only UNPROVEN in a control is not calibrated by it.
        assert_eq!(shown(&probes[2]), row("lock", "lock", 1));
        assert_eq!(shown(&probes[3]), row("", "", 0));
        // A change of the prober says nothing about layers.
        assert_eq!(shown(&probes[4]), row("threads", "", 0));

        // Without the control in which one layer is enough, both have to go.
        results.retain(|result| result.control != "network");
        calibrate(&mut probes, &results, &Comparable::of(&run));
        assert_eq!(
            shown(&probes[1]),
            row("seccomp-network", "namespace seccomp", 2)
        );
        // A control that does not hold shows nothing.
        results[1].unproven.push("XP-FD".into());
        calibrate(&mut probes, &results, &Comparable::of(&run));
        assert_eq!(shown(&probes[1]), row("", "", 0));
    }

    /// What failed in the run itself shows nothing in a control, and what a kernel of its
    /// own keeps without a filter need not flip.
    #[test]
    fn on_a_kernel_of_its_own_only_what_passed_before_counts() {
        let matrix = crate::matrix::Matrix::rev4();
        let (raw, sweeps) = (RawFacts::default(), Sweeps::default());
        let texts = Texts::of_run(&raw, &sweeps);
        let probe = |id: &str, verdict| {
            let spec = catalogue::find(id).unwrap();
            let path = String::new();
            let result = crate::derive::probe_result(spec, Vec::new(), &texts, &matrix, path);
            ProbeResult { verdict, ..result }
        };
        let mut probes = [
            probe("PR-NET-1", Verdict::Pass),
            probe("XP-ADMIN", Verdict::Pass),
            probe("XP-FS-FLAGS", Verdict::Fail),
            probe("XP-MEM-EXEC", Verdict::Fail),
            probe("XP-NS-FRESH", Verdict::Unproven),
        ];
        let run = Comparable::of(&run_settings("/run/a"));
        let own = run.clone().on(KernelKind::Gvisor, &probes);
        let said = |name: &str, flipped: &[&str], unproven: &[&str]| {
            let list = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect();
            ControlResult {
                flipped: list(flipped),
                unproven: list(unproven),
                ..result_of(controls::find(name).unwrap(), |_| {})
            }
        };
        let always = ["PR-NET-1", "XP-FS-FLAGS", "XP-MEM-EXEC"];
        let good = said("seccomp", &always, &["XP-KEYRING", "XP-NS-FRESH"]);
        assert_eq!(control_problems(&good, &own), [""; 0]);
        assert!(!control_problems(&good, &run).is_empty());
        assert!(!control_problems(&good, &run.clone().on(KernelKind::Shared, &probes)).is_empty());
        let silent = said("exec-tmpfs", &always[1..], &["XP-NS-FRESH"]);
        assert_eq!(control_problems(&silent, &own), ["it shows nothing"]);
        assert!(only_shows_nothing(&silent, &own));
        for wrong in [
            said("environment", &["PR-ENV-1", "PR-NET-1"], &[]),
            said("environment", &["PR-ENV-1"], &["PR-NET-1"]),
        ] {
            assert_eq!(control_problems(&wrong, &own).len(), 1);
            assert!(!only_shows_nothing(&wrong, &own));
        }
        let controls = [good, silent];
        let again = calibrate(&mut probes, &controls, &own);
        assert_eq!([again[0].holds, again[1].holds], [true, false]);
        let by: Vec<usize> = probes
            .iter()
            .map(|probe| probe.calibrated_by.len())
            .collect();
        assert_eq!(by, [1, 0, 0, 0, 0]);
    }

    #[test]
    fn what_a_kernel_of_its_own_cannot_run_is_left_out() {
        let by_launcher = run_settings("/run/a");
        let mut by_engine = by_launcher.clone();
        by_engine.binds[0] = Bind::of_engine("tki-attest-x", "/in", true);
        let of = |run: &Settings, kind| -> Vec<&str> {
            let controls = applicable(Some(EngineKind::Docker), run, kind);
            controls.iter().map(|control| control.name).collect()
        };
        let names = |kind| of(&by_engine, kind);
        let (shared, own) = (names(KernelKind::Shared), names(KernelKind::Gvisor));
        assert!(shared.contains(&"network") && shared.contains(&"suid-file"));
        for left in [
            "seccomp-network",
            "network",
            "ipc",
            "processes",
            "engine-socket",
            "suid-file",
            "pids",
            "memory",
        ] {
            assert!(!own.contains(&left), "{left}");
        }
        assert!(own.contains(&"seccomp") && own.contains(&"lock"));
        let vm = names(KernelKind::Vm);
        let more: Vec<_> = vm.iter().filter(|name| !own.contains(name)).collect();
        assert_eq!(more, [&"new-privileges"]);
        // What the launcher puts into its own directories needs no neighbour.
        let own = of(&by_launcher, KernelKind::Gvisor);
        assert!(own.contains(&"engine-socket") && own.contains(&"suid-file"));
        assert!(!own.contains(&"network"));
    }
}
