use super::kernel::{release, version};
use super::maps::Map;
use super::*;
use crate::evidence::ImageIdentity;
use alloc::format;
use alloc::string::ToString;
use alloc::vec::Vec;

#[test]
fn a_release_is_what_the_kernel_calls_itself() {
    let text = "Linux version 6.1.0-18-amd64 (debian-kernel@lists.debian.org) (gcc-12) #1 SMP\n";
    assert_eq!(release(text), Some("6.1.0-18-amd64"));
    assert_eq!(version("6.1.0-18-amd64"), Some((6, 1)));
    assert_eq!(version("5.10-rc1"), Some((5, 10)));
    assert!(version("5.8.0").unwrap() < (5, 9) && version("5.10").unwrap() > (5, 9));
    for bad in [
        "",
        "Linux version ",
        "Linux version  (x)",
        "Linux version 6 1 (x)",
        "6.1 (x)",
    ] {
        assert_eq!(release(bad), None, "{bad:?}");
    }
    for bad in ["6", "6.", "x.1", "6.x", "-6.1"] {
        assert_eq!(version(bad), None, "{bad:?}");
    }
}

#[test]
fn maps_are_read_in_both_directions() {
    let map = Map::parse("         0       1001          1\n         1     100000      65536\n");
    let map = map.unwrap();
    assert_eq!(map.inner(1001), Some(0));
    assert_eq!(map.inner(158_712), Some(58_713));
    assert_eq!(
        (map.inner(0), map.inner(99_999), map.inner(165_536)),
        (None, None, None)
    );
    assert!(map.has_inner(65_536) && !map.has_inner(65_537) && !map.is_identity());
    assert!(Map::parse("0 0 4294967295\n").unwrap().is_identity());
    assert!(map.has_same_ids(&Map::parse("0 7 1\n1 9 65536").unwrap()));
    assert!(!map.has_same_ids(&Map::parse("0 7 1\n").unwrap()));
    let huge = u64::MAX;
    let far = Map::parse(&format!("{huge} {huge} {huge}\n")).unwrap();
    assert_eq!((far.inner(huge), far.inner(0)), (Some(huge), None));
    for bad in [
        "",
        "0 0",
        "0 0 0",
        "0 0 1 2",
        "0 -1 1",
        "0 x 1",
        "0 0 1\n\n",
    ] {
        assert!(Map::parse(bad).is_none(), "{bad:?}");
    }
}

#[test]
fn our_image_has_three_names() {
    let image = ImageIdentity {
        manifest_digest: "sha256:aa".into(),
        config_digest: "sha256:bb".into(),
        diff_ids: Vec::new(),
        engine_reported_id: "cc".into(),
    };
    for own in ["sha256:aa", "aa", "bb", "sha256:cc", "cc"] {
        assert!(is_own_image(&image, own), "{own}");
    }
    for other in ["", "sha256:", "dd", "sha256:sha256:aa"] {
        assert!(!is_own_image(&image, other), "{other}");
    }
}

#[test]
fn no_more_is_told_than_a_person_reads() {
    let mut found = Found::default();
    for _ in 0..1000 {
        found.must(false, "a", || shown(&"\u{1b}".repeat(1000)));
    }
    assert_eq!(found.0.len(), MOST);
    let line = found.0[0].to_string();
    assert!(line.len() < 1000 && !line.contains('\u{1b}'), "{line}");
}
