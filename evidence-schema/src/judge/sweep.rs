//! The sweep of all system calls, held against the floor and against the profile: what the
//! profile says, found by reading it, and what came back, which must agree.

use super::facts::Problem;
use super::profile::{Call, Calls};
use crate::errno;
use crate::evidence::{SyscallLayers, Verdict};
use crate::facts;
use crate::seccomp::About;
use crate::seccomp::marks::mark_name;
use crate::syscalls;
use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;
use alloc::{format, vec};

/// Without a profile that can be read nobody knows what a sweep should give.
pub fn unreadable_profile() -> Problem {
    (Verdict::Unproven, "the profile cannot be read".into())
}

/// One call of a sweep.
struct Entry<'a> {
    number: u32,
    answer: &'a str,
    call: Call,
}

impl Entry<'_> {
    fn name(&self) -> &'static str {
        syscalls::name(self.number).unwrap_or("unknown")
    }

    /// By the filter or by the kernel itself.
    fn is_denied(&self) -> bool {
        matches!(self.answer, "EPERM" | "ENOSYS" | "SIGSYS")
    }

    fn shown(&self) -> String {
        format!("{} ({})", self.name(), self.answer)
    }
}

/// A sweep's entries: every known number in its order, and some beyond.
fn entries<'a>(reading: &'a str, calls: &Calls) -> Result<Vec<Entry<'a>>, Problem> {
    let unproven = |what: String| Err((Verdict::Unproven, what));
    let mut entries = Vec::with_capacity(512);
    // There are few different answers.
    let mut known: Vec<&str> = vec!["ok", "exit", "skipped"];
    for (expected, entry) in (0..).zip(facts::parts(reading, b' ')) {
        let at = entry.bytes().position(|byte| byte == b'=');
        let parsed = at.and_then(|at| Some((entry[..at].parse().ok()?, &entry[at + 1..])));
        let Some((number, answer)): Option<(u32, &str)> = parsed else {
            return unproven(format!("not a sweep: {entry:?}"));
        };
        if !known.contains(&answer) {
            if !errno::is_name(answer) {
                return unproven(format!("not an answer: {entry:?}"));
            }
            known.push(answer);
        }
        if number != expected {
            return unproven(format!("number {expected} is missing"));
        }
        let entry = Entry {
            number,
            answer,
            call: calls.get(number),
        };
        if answer == "skipped" && !entry.call.not_tried {
            return unproven(format!("{} was not tried", entry.name()));
        }
        entries.push(entry);
    }
    match u32::try_from(entries.len()) {
        Ok(seen) if seen >= syscalls::BEYOND => {
            entries.retain(|entry| entry.answer != "skipped");
            Ok(entries)
        }
        _ => unproven(format!("the sweep ends at {}", entries.len())),
    }
}

/// A failure that names calls, if there are any.
fn failure(what: &str, calls: Vec<String>) -> Option<Problem> {
    let named = || format!("{what}: {}", calls.join(", "));
    (!calls.is_empty()).then(|| (Verdict::Fail, named()))
}

/// A sweep that says that the prober could not have told it.
fn untold(entries: &[Entry], mark: &str) -> Option<Problem> {
    let stopped = |entry: &&Entry| entry.call.needed && (entry.is_denied() || entry.answer == mark);
    let stopped = entries.iter().filter(stopped).map(Entry::shown).collect();
    failure("denied, and the prober told all the same", stopped)
}

/// What is wrong with a sweep under a profile.
pub fn check(reading: &str, calls: &Calls) -> Vec<Problem> {
    let entries = match entries(reading, calls) {
        Ok(entries) => entries,
        Err(problem) => return vec![problem],
    };
    let through = |entry: &&Entry| entry.call.must_be_denied() && !entry.is_denied();
    let through = entries.iter().filter(through).map(Entry::shown).collect();
    [
        failure("the profile does not deny", calls.open.clone()),
        failure("got through", through),
        untold(&entries, &mark_name()),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// What is wrong with a sweep under a profile with marks; `calls` are expected without
/// them. What comes back with the mark was stopped by the filter, and what does not was not.
pub fn check_marked(reading: &str, calls: &Calls) -> Vec<Problem> {
    told(reading, calls).0
}

fn marked_problems(entries: &[Entry], calls: &Calls) -> Vec<Problem> {
    let mark = mark_name();
    let stopped = |entry: &Entry| entry.answer == mark || entry.answer == "SIGSYS";
    if !entries.iter().any(stopped) {
        return vec![(Verdict::Unproven, "no mark came back".into())];
    }
    // What the default denies has no mark where the engine does not know its name; where
    // the default lets through, nothing but the rule denies.
    let open = |entry: &&Entry| {
        entry.call.must_be_denied()
            && !stopped(entry)
            && !(calls.denies_by_default && entry.is_denied())
            && (entry.call.floor || !entry.is_denied())
    };
    let foreign = |entry: &&Entry| {
        entry.call.about == About::Allowed && !entry.call.unfiltered && stopped(entry)
    };
    let named = |wanted: &dyn Fn(&&Entry) -> bool| {
        entries.iter().filter(wanted).map(Entry::shown).collect()
    };
    [
        failure("not stopped by the filter", named(&open)),
        failure(
            "stopped by a filter that is not the profile",
            named(&foreign),
        ),
        untold(entries, &mark),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The filter stopped at least one call of a sweep.
pub fn has_marks(reading: &str) -> bool {
    let mark = mark_name();
    let answers = facts::parts(reading, b' ').filter_map(|entry| entry.split_once('='));
    answers
        .into_iter()
        .any(|(_, answer)| answer == mark || answer == "SIGSYS")
}

/// What a sweep with marks tells: what is wrong with it, and which layer denied each call.
pub fn told(reading: &str, calls: &Calls) -> (Vec<Problem>, SyscallLayers) {
    match entries(reading, calls) {
        Ok(entries) => (marked_problems(&entries, calls), layers(&entries)),
        // Not to tell is one thing, to tell what no prober tells another.
        Err((_, what)) => (vec![(Verdict::Fail, what)], SyscallLayers::default()),
    }
}

/// Which layer denied each call, by a sweep with marks.
fn layers(entries: &[Entry]) -> SyscallLayers {
    let mut layers = SyscallLayers::default();
    let mark = mark_name();
    for entry in entries
        .iter()
        .filter(|entry| entry.number < syscalls::BEYOND)
    {
        let Some(name) = syscalls::name(entry.number) else {
            continue;
        };
        let list = match entry.answer {
            "SIGSYS" => &mut layers.filter,
            answer if answer == mark => &mut layers.filter,
            "EPERM" | "ENOSYS" if entry.call.about == About::Allowed => &mut layers.kernel,
            "EPERM" | "ENOSYS" => &mut layers.unmarked,
            _ => &mut layers.reached,
        };
        list.push(name.to_owned());
    }
    layers
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::floor;
    use crate::seccomp::{Place, Rules};

    fn check(reading: &str, profile: &str, place: Place) -> Vec<Problem> {
        super::check(reading, &Calls::of(profile, place).unwrap())
    }

    fn check_marked(reading: &str, profile: &str, place: Place) -> Vec<Problem> {
        super::check_marked(reading, &Calls::of(profile, place).unwrap())
    }

    const HERE: Place = Place {
        kernel: Some((6, 1)),
    };

    /// What a kernel would answer under a profile: what it denies comes back as `denial`.
    fn sweep(profile: &str, denial: &str, kernel: impl Fn(&str) -> &'static str) -> String {
        let rules = Rules::parse(profile.as_bytes()).unwrap();
        let reading = rules.read_for(HERE);
        let answer = |number: u32| {
            let name = syscalls::name(number).unwrap_or("unknown");
            if floor::NOT_TRIED.contains(&name) {
                "skipped".to_owned()
            } else if floor::UNFILTERED.contains(&name) {
                "SIGILL".to_owned()
            } else if reading.about(name) == About::Denied {
                denial.to_owned()
            } else {
                kernel(name).to_owned()
            }
        };
        let entry = |number: u32| format!("{number}={}", answer(number));
        let entries: Vec<String> = (0..syscalls::BEYOND + 10).map(entry).collect();
        entries.join(" ")
    }

    fn verdict(problems: &[Problem]) -> Verdict {
        let verdicts = problems.iter().map(|(verdict, _)| *verdict);
        verdicts.max().unwrap_or(Verdict::Pass)
    }

    /// A profile with one more rule in front.
    fn with_rule(profile: &str, rule: &str) -> String {
        profile.replacen("\"syscalls\": [", &format!("\"syscalls\": [{rule},"), 1)
    }

    #[test]
    fn both_built_in_profiles_hold() {
        for profile in [crate::TARGETED_DENY, crate::DENY_BY_DEFAULT] {
            let plain = sweep(profile, "EPERM", |_| "EBADF");
            assert_eq!(check(&plain, profile, HERE), []);
            let marked = sweep(profile, &mark_name(), |_| "EBADF");
            assert_eq!(check_marked(&marked, profile, HERE), []);
            assert_eq!(
                verdict(&check_marked(&plain, profile, HERE)),
                Verdict::Unproven
            );
        }
    }

    /// The kernel answers EPERM by itself: reading finds what observing does not.
    #[test]
    fn every_call_of_the_floor_that_is_opened_is_found_by_reading() {
        let argument = r#","args":[{"index":1,"value":1,"op":"SCMP_CMP_EQ"}]"#;
        for name in floor::DENIED {
            for condition in ["", argument] {
                let rule =
                    format!(r#"{{"names":["{name}"],"action":"SCMP_ACT_ALLOW"{condition}}}"#);
                let profile = with_rule(crate::DENY_BY_DEFAULT, &rule);
                let seen = sweep(crate::DENY_BY_DEFAULT, "EPERM", |_| "EBADF");
                let problems = check(&seen, &profile, HERE);
                assert_eq!(verdict(&problems), Verdict::Fail, "{rule}");
                assert!(problems[0].1.contains(name), "{problems:?}");
            }
        }
        // Outside of the floor nothing is demanded.
        let rule = r#"{"names":["getuid"],"action":"SCMP_ACT_ALLOW"}"#;
        let profile = with_rule(crate::DENY_BY_DEFAULT, rule);
        assert_eq!(
            check(&sweep(&profile, "EPERM", |_| "EBADF"), &profile, HERE),
            []
        );
    }

    /// A rule that the engine did not take, and a filter that nobody named.
    #[test]
    fn marks_tell_the_filter_from_the_kernel_and_from_another_filter() {
        let profile = crate::TARGETED_DENY;
        let good = sweep(profile, &mark_name(), |_| "EBADF");
        let number = |name: &str| syscalls::number(name).unwrap();
        let with = |name: &str, answer: &str| {
            let from = format!(" {}={}", number(name), mark_name());
            let open = format!(" {}=EBADF", number(name));
            let to = format!(" {}={answer}", number(name));
            let changed = good.replacen(&from, &to, 1);
            match changed == good {
                true => good.replacen(&open, &to, 1),
                false => changed,
            }
        };
        for (name, answer, why) in [
            ("reboot", "EPERM", "not stopped by the filter: reboot"),
            ("socket", "EINVAL", "not stopped by the filter: socket"),
            ("getuid", &mark_name(), "that is not the profile: getuid"),
            ("getuid", "SIGSYS", "that is not the profile: getuid"),
            ("write", &mark_name(), "told all the same: write"),
        ] {
            let problems = check_marked(&with(name, answer), profile, HERE);
            assert_eq!(verdict(&problems), Verdict::Fail, "{name}");
            assert!(
                problems.iter().any(|(_, what)| what.contains(why)),
                "{problems:?}"
            );
        }
        // The kernel refuses what the profile lets through: that is no filter.
        assert_eq!(check_marked(&with("getuid", "EPERM"), profile, HERE), []);
        let calls = Calls::of(profile, HERE).unwrap();
        let (_, found) = told(&with("getuid", "EPERM"), &calls);
        assert!(found.kernel == ["getuid"] && found.filter.iter().any(|name| name == "reboot"));
    }

    #[test]
    fn a_sweep_that_could_not_have_been_told_is_none() {
        let profile = crate::DENY_BY_DEFAULT;
        let good = sweep(profile, "EPERM", |_| "EBADF");
        for name in floor::TOLD_BY {
            let number = syscalls::number(name).unwrap();
            let bad = format!(" {good}").replacen(
                &format!(" {number}=EBADF"),
                &format!(" {number}=EPERM"),
                1,
            );
            let problems = check(bad.trim_start(), profile, HERE);
            assert_eq!(verdict(&problems), Verdict::Fail, "{name}: {problems:?}");
        }
    }
}
