//! A profile whose denials can be told from the kernel's own. The kernel answers EPERM for
//! want of a capability, too; an errno that it does not have comes from the filter alone.

use super::{Action, Rules};
use crate::errno;
use crate::syscalls;
use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;
use serde_json::{Value, json};

/// The mark: an errno that no call gives by itself. The kernel's own end at 133, and those
/// that it keeps to itself lie between 512 and 531.
pub const MARK: u32 = 1009;

/// How a mark is written in a sweep.
pub fn mark_name() -> String {
    errno::name(MARK as i32)
}

/// The same profile, but whatever it denies with an errno it denies with [`MARK`]. `None`
/// if it is not a profile. Anybody can do this again, and so check it.
///
/// Not every engine hands the errno of the default on, so calls that no rule names get a
/// rule of their own.
pub fn marked(profile: &str) -> Option<String> {
    let rules = Rules::parse(profile.as_bytes()).ok()?;
    let mut value: Value = serde_json::from_str(profile).ok()?;
    let object = value.as_object_mut()?;
    let list = object.entry("syscalls");
    let list = list.or_insert_with(|| json!([]));
    if list.is_null() {
        *list = json!([]);
    }
    let list = list.as_array_mut()?;
    for (written, rule) in list.iter_mut().zip(&rules.syscalls) {
        if rule.action == Action::ScmpActErrno && rule.denies() {
            let written = written.as_object_mut()?;
            written.remove("errno");
            written.insert("errnoRet".into(), MARK.into());
        }
    }
    if rules.default_action == Action::ScmpActErrno && rules.denies_by_default() {
        let named: BTreeSet<&str> = rules
            .syscalls
            .iter()
            .flat_map(|rule| rule.names.iter().map(String::as_str))
            .collect();
        let known = (0..syscalls::BEYOND).filter_map(syscalls::name);
        let others: Vec<&str> = known.filter(|name| !named.contains(name)).collect();
        list.push(json!({
            "comment": "What the default denies, with the mark",
            "names": others,
            "action": "SCMP_ACT_ERRNO",
            "errnoRet": MARK,
        }));
        object.remove("defaultErrno");
        object.insert("defaultErrnoRet".into(), MARK.into());
    }
    serde_json::to_string_pretty(&value).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seccomp::Place;

    /// A mark changes what is answered, never what is denied.
    #[test]
    fn a_marked_profile_denies_the_same_calls() {
        for plain in [crate::TARGETED_DENY, crate::DENY_BY_DEFAULT] {
            let text = marked(plain).unwrap();
            let [plain, marked] = [plain, &text].map(|text| Rules::parse(text.as_bytes()).unwrap());
            let place = Place::default();
            let (before, after) = (plain.read_for(place), marked.read_for(place));
            for name in (0..syscalls::BEYOND).filter_map(syscalls::name) {
                assert_eq!(before.about(name), after.about(name), "{name}");
                let mut denying = after.rules_for(name).filter(|rule| rule.denies());
                assert!(denying.all(|rule| rule.errno_number() == MARK), "{name}");
            }
            assert_eq!(after.open_floor(), []);
        }
        assert_eq!(marked("[]"), None);
    }

    #[test]
    fn what_is_no_errno_stays_as_it_is() {
        let text = r#"{"defaultAction":"SCMP_ACT_KILL","syscalls":[
            {"names":["bpf"],"action":"SCMP_ACT_ERRNO","errnoRet":0},
            {"names":["read"],"action":"SCMP_ACT_ALLOW"},
            {"names":["socket"],"action":"SCMP_ACT_ERRNO","errno":"EACCES"}]}"#;
        let again = Rules::parse(marked(text).unwrap().as_bytes()).unwrap();
        assert_eq!(again.syscalls.len(), 3);
        assert_eq!(again.syscalls[0].errno_number(), 0);
        assert_eq!(again.syscalls[2].errno_number(), MARK);
        assert_eq!(again.about("bpf"), crate::seccomp::About::Allowed);
        let bare = marked(r#"{"defaultAction":"SCMP_ACT_ERRNO","syscalls":null}"#).unwrap();
        let bare = Rules::parse(bare.as_bytes()).unwrap();
        assert!(bare.syscalls[0].names.len() > 300);
    }
}
